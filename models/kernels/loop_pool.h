#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <memory>

namespace sluice::models {

/// Threads that share the ranges of a loop: the caller's and workers of oneTBB's pool, of which the process has one. A thread takes
/// a range when it gets to it. For the use of one thread. The only file that knows oneTBB: it is not compiled with ThreadSanitizer,
/// which would report how oneTBB's headers hand over to its library.
class LoopPool {
 public:
  explicit LoopPool(int64_t threads);
  ~LoopPool();

  /// Calls work(range) for each range in [0, ranges); returns when all are done. `work` does not throw.
  void run(int64_t ranges, c10::function_ref<void(int64_t)> work);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace sluice::models
