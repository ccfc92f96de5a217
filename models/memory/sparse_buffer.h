#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace sluice::models {

/// A flat float32 buffer of zeros on the CPU that takes memory only where somebody has written to it, page by page, until it is
/// given back. No tensor's memory in the sense of TensorMemory. Not thread-safe.
class SparseBuffer {
 public:
  explicit SparseBuffer(int64_t floats);

  /// [floats], always the same; whoever has it keeps the memory.
  const at::Tensor& tensor() const { return tensor_; }

  /// Of the pages that hold something now. Asks the system about each.
  int64_t resident_bytes() const;

  /// Whether a page that the range touches holds something: where none does, the range is zeros.
  bool holds(int64_t begin, int64_t end) const;

  /// Gives the pages that lie within the range back to the system: zeros from now on. The rest of the range is left as it is.
  void give_back(int64_t begin, int64_t end);

 private:
  std::optional<int64_t> pages_held(int64_t begin, int64_t end) const;

  at::Tensor tensor_;
};

}  // namespace sluice::models
