#include "models/kernels/loop_pool.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

namespace sluice::models {

namespace tbb = oneapi::tbb;

struct LoopPool::Arena {
  tbb::task_arena threads;
};

// The pool has as many workers as the machine has cores, and prints a warning when an arena asks for more.
LoopPool::LoopPool(int64_t threads)
    : arena_(std::make_unique<Arena>(tbb::task_arena(std::min(static_cast<int>(threads), tbb::info::default_concurrency())))) {}

LoopPool::~LoopPool() = default;

void LoopPool::run(int64_t ranges, c10::function_ref<void(int64_t)> work) {
  arena_->threads.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, ranges),
        [&](const tbb::blocked_range<int64_t>& some) {
          for (int64_t range = some.begin(); range < some.end(); ++range) work(range);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace sluice::models
