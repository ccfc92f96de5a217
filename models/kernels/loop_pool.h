#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace sluice::models {

/// Threads that share the pieces of a loop: the caller's and workers of oneTBB's pool, of which the process has one. A thread
/// takes its own part of them first, the same one in each loop, so that it finds in its caches what it wrote in the loop before;
/// then what the others have not got to. Owned and used by one thread.
///
/// The only file that knows oneTBB: it is not compiled with ThreadSanitizer, which would report how oneTBB's headers hand over to
/// its library.
class LoopPool {
 public:
  explicit LoopPool(int64_t threads);
  ~LoopPool();

  /// Calls work(begin, end) for ranges that cover [0, pieces); returns when all are done. Of its own part a thread takes half of
  /// what is left at a time. An exception is passed on.
  void run(int64_t pieces, FunctionRef<void(int64_t, int64_t)> work);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace sluice::models
