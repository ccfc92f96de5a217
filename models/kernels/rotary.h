#pragma once

#include <cstdint>
#include <vector>

#include "models/config/config.h"

namespace sluice::models {

/// How the heads of a token are rotated: the first `dims` of each, in pairs (i, i + dims/2), or (2i, 2i+1) if neighbours
/// belong together. By default nothing is rotated.
struct Rotary {
  const float* angles = nullptr;  // [dims]: dims/2 cosines, then dims/2 sines
  int64_t dims = 0;
  bool neighbours = false;

  /// The places in a head of pair i.
  int64_t first(int64_t i) const { return neighbours ? 2 * i : i; }
  int64_t second(int64_t i) const { return neighbours ? 2 * i + 1 : i + dims / 2; }
};

/// Cosines and sines of rotary positions (Su et al. 2021, "RoFormer", eq. 15): angle(p, i) = p * theta^(-2i/dims), 0 <= i <
/// dims/2, stretched as config.rope_at(which) says, cosines and sines times its attention_factor. Immutable after construction.
/// Computed in float32 in the order that Hugging Face uses, so that long positions agree.
class RotaryTable {
 public:
  /// For the positions [0, length) of a sample of `length` tokens. The angles of a longer sample differ where the scaling depends
  /// on the length (dynamic, longrope) and `length` or that sample's is above config.steady_positions(); nowhere else.
  /// With learned positions nothing is rotated: the table is empty and dims() is 0.
  RotaryTable(const ModelConfig& config, int64_t length, int64_t which = 0);

  /// [dims]: dims/2 cosines, then dims/2 sines. 0 <= position < positions().
  const float* row(int64_t position) const { return rows_.data() + position * dims_; }

  Rotary at(int64_t position) const { return {row(position), dims_, neighbours_}; }

  int64_t positions() const { return positions_; }
  int64_t dims() const { return dims_; }  // of each head, from the first, that are rotated; the rest stays as it is

 private:
  int64_t dims_;
  int64_t positions_;
  bool neighbours_;
  std::vector<float> rows_;  // [positions, dims]
};

/// Makes `tables`, one for each rope_at() of the config, hold `positions` positions at least, and more of them each time, but
/// never more than steady_positions(): up to there the angles are the same in every table that has them. None with learned
/// positions.
void grow_rotary_tables(const ModelConfig& config, int64_t positions, std::vector<RotaryTable>& tables);

}  // namespace sluice::models
