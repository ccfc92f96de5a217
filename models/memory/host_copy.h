#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace sluice::models {

/// Memory of this machine for copies of a flat float32 buffer, one after the other. It is taken from the system at the first
/// copy, as large pages where the system has them, and kept: only the first copy waits for pages. No tensor's memory in the sense
/// of TensorMemory. copy() and what reads tensor() exclude each other; bytes() may be called from any thread.
class HostCopy {
 public:
  /// Of buffers of `floats` numbers.
  explicit HostCopy(int64_t floats) : floats_(floats) {}
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  /// Gets the memory from the system, page by page, which may take seconds for gigabytes. Else the first copy does.
  void prepare();

  /// Takes what `parts` of a flat buffer hold now, back to back, `floats` of them together, on the threads of the caller's loops.
  /// Any device: from one that works apart through a little pinned memory, which is given back.
  void copy(const std::vector<at::Tensor>& parts);

  /// The memory as [floats] on the CPU, always the same; whoever has it keeps the memory. Undefined before the first copy.
  const at::Tensor& tensor() const { return tensor_; }

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void copy(const at::Tensor& part, int64_t to);
  void copy_from_device(const at::Tensor& part, int64_t to);
  void allocate();

  const int64_t floats_;
  at::Tensor tensor_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace sluice::models
