#include "cli/model/model_facts.h"

namespace sluice::cli {

int64_t parameters_of(const models::ModelConfig& config, models::Head head) {
  models::Weights shapes_only;
  int64_t total = 0;
  for (const auto& weight : models::expected_weights(config, head, shapes_only)) {
    int64_t count = 1;
    for (const int64_t size : weight.shape) count *= size;
    total += count;
  }
  return total;
}

}  // namespace sluice::cli
