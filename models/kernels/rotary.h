#pragma once

#include <cstdint>
#include <vector>

#include "models/config/config.h"

namespace sluice::models {

/// Cosines and sines of rotary positions (Su et al. 2021, "RoFormer", eq. 15): angle(p, i) = p * theta^(-2i/dims), 0 <= i <
/// dims/2, stretched as config.rope says, cosines and sines times its attention_factor. Immutable after construction. Computed in
/// float32 in the order that Hugging Face uses, so that long positions agree.
class RotaryTable {
 public:
  /// For the positions [0, length) of a sample of `length` tokens. The angles of a longer sample differ where the scaling depends
  /// on the length (dynamic, longrope) and `length` or that sample's is above config.steady_positions(); nowhere else.
  /// With learned positions nothing turns: the table is empty and dims() is 0.
  RotaryTable(const ModelConfig& config, int64_t length);

  /// [dims]: dims/2 cosines, then dims/2 sines. 0 <= position < positions().
  const float* row(int64_t position) const { return rows_.data() + position * dims_; }

  int64_t positions() const { return positions_; }
  int64_t dims() const { return dims_; }  // of each head that turn, from the first; the rest stays as it is

 private:
  int64_t dims_;
  int64_t positions_;
  std::vector<float> rows_;  // [positions, dims]
};

}  // namespace sluice::models
