#include "models/rotary.h"

#include <cmath>

#include "base/error.h"

namespace sluice::models {

RotaryTable::RotaryTable(int64_t head_dim, double theta, int64_t positions) : head_dim_(head_dim), positions_(positions) {
  SLUICE_CHECK(head_dim > 0 && head_dim % 2 == 0 && positions >= 0, "a rotary table needs an even head size");
  rows_.resize(static_cast<size_t>(head_dim * positions));
  const int64_t half = head_dim / 2;
  std::vector<float> frequencies(static_cast<size_t>(half));
  for (int64_t i = 0; i < half; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    frequencies[i] = 1.0f / static_cast<float>(std::pow(theta, exponent));
  }
  for (int64_t position = 0; position < positions; ++position) {
    float* row = rows_.data() + position * head_dim;
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[i];
      row[i] = std::cos(angle);
      row[half + i] = std::sin(angle);
    }
  }
}

}  // namespace sluice::models
