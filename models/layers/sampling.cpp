#include "models/layers/sampling.h"

#include <cmath>
#include <string>

namespace sluice::models {
namespace {

void require(bool holds, const char* what, double value) {
  if (!holds) throw UserError(std::string(what) + ", not " + std::to_string(value));
}

}  // namespace

void check_range(const SamplingOptions& options) {
  require(options.temperature >= 0 && std::isfinite(options.temperature), "temperature must be at least 0", options.temperature);
  require(options.top_k >= 0, "top_k must be at least 0", static_cast<double>(options.top_k));
  require(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1", options.top_p);
  require(options.min_p >= 0 && options.min_p <= 1, "min_p must be at least 0 and at most 1", options.min_p);
  require(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty), "repetition_penalty must be above 0",
          options.repetition_penalty);
  require(std::isfinite(options.presence_penalty), "presence_penalty must be a number", options.presence_penalty);
  require(std::isfinite(options.frequency_penalty), "frequency_penalty must be a number", options.frequency_penalty);
}

UserError logits_are_not_finite(uint64_t sample) {
  return UserError("sample " + std::to_string(sample) + ": logits are not finite",
                   "the model has diverged: look at its loss, and lower learning_rate");
}

}  // namespace sluice::models
