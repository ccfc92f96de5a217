#pragma once

#include <cstdint>
#include <vector>

namespace sluice::models {

/// Where the weights that are trained lie in a flat buffer: vectors (norms, biases) first, then matrices, each in the order in
/// which they are given, that of the forward pass, so that a backward is done with the end of the buffer first. Each begins at a
/// cache line, and what is between them stays zero. A plain value.
struct FlatLayout {
  explicit FlatLayout(const std::vector<std::vector<int64_t>>& shapes);

  static int64_t padded(int64_t size);

  /// The length of a buffer for tensors of these sizes.
  static int64_t floats_for(const std::vector<int64_t>& sizes);

  std::vector<int64_t> first;  // of each weight
  int64_t vector_floats = 0;
  int64_t floats = 0;  // of the buffer
};

}  // namespace sluice::models
