#include "models/rotary.h"

#include <cmath>

#include "base/error.h"

namespace sluice::models {

RotaryTable::RotaryTable(const ModelConfig& config, int64_t length) : dims_(config.rotary_dims()), positions_(length) {
  SLUICE_CHECK(dims_ > 0 && dims_ % 2 == 0 && length >= 0, "a rotary table needs an even number of dimensions");
  rows_.resize(static_cast<size_t>(dims_ * positions_));
  const int64_t half = dims_ / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims_);
    frequencies[i] = 1.0f / static_cast<float>(std::pow(config.rope.theta, exponent));
  }
  for (int64_t position = 0; position < positions_; ++position) {
    float* row = rows_.data() + position * dims_;
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
}

}  // namespace sluice::models
