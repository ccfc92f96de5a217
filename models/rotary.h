#pragma once

#include <cstdint>
#include <vector>

namespace sluice::models {

/// Cosines and sines of rotary positions (Su et al. 2021, "RoFormer", eq. 15): angle(p, i) = p * theta^(-2i/D), 0 <= i < D/2.
/// Immutable after construction. Computed in float32 in the order that Hugging Face uses, so that long positions agree.
class RotaryTable {
 public:
  RotaryTable(int64_t head_dim, double theta, int64_t positions);

  /// [D]: D/2 cosines, then D/2 sines. 0 <= position < positions().
  const float* row(int64_t position) const { return rows_.data() + position * head_dim_; }

  int64_t positions() const { return positions_; }
  int64_t head_dim() const { return head_dim_; }

 private:
  int64_t head_dim_;
  int64_t positions_;
  std::vector<float> rows_;  // [positions, D]
};

}  // namespace sluice::models
