#include "engine/contract/node_needs.h"

namespace sluice::engine {

const char* name_of(ModelUse use) {
  switch (use) {
    case ModelUse::kReads:
      return "reads";
    case ModelUse::kSamples:
      return "samples";
    case ModelUse::kUpdates:
      return "updates";
    case ModelUse::kAverages:
      return "averages";
    case ModelUse::kPublishes:
      return "publishes";
  }
  return "";
}

}  // namespace sluice::engine
