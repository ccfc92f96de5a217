#include "engine/contract/contract.h"

namespace sluice::engine {

const char* name_of(ModelUse use) {
  switch (use) {
    case ModelUse::kReads:
      return "reads";
    case ModelUse::kSamples:
      return "samples";
    case ModelUse::kUpdates:
      return "updates";
    case ModelUse::kPublishes:
      return "publishes";
  }
  return "";
}

void Findings::add(const char* kind, Severity severity, std::string_view key, const std::string& message,
                   const std::string& help) {
  const Entry* entry = table_.find(key);
  problems_.push_back({.kind = kind,
                       .where = entry != nullptr ? entry->value.where : table_.where,
                       .message = message,
                       .caret = {},
                       .notes = {},
                       .help = help,
                       .severity = severity});
}

}  // namespace sluice::engine
