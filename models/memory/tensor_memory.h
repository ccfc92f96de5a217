#pragma once

#include <cstdint>
#include <memory>

namespace sluice::models {

/// Counts the bytes of tensors on the CPU, by LibTorch's own reports of what it allocates and frees.
///
/// A thread is counted from watch_this_thread() to its end. A tensor counts when a counted thread allocates it, until a counted
/// thread frees it, so all threads that share tensors must be counted by the same object. Memory that is not a tensor's
/// (std::vector) does not count. live() and take_peak() may be called from any thread. Costs a lock for each tensor.
class TensorMemory {
 public:
  TensorMemory();

  /// Another TensorMemory that watched this thread sees nothing of it any more.
  void watch_this_thread();

  int64_t live() const;

  /// The most bytes that were live at a time since the last call.
  int64_t take_peak();

 private:
  class Counter;
  std::shared_ptr<Counter> counter_;  // the threads hold it too
};

}  // namespace sluice::models
