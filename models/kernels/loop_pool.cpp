#include "models/kernels/loop_pool.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace sluice::models {

namespace tbb = oneapi::tbb;

namespace {

/// Pieces one after the other, which threads take from the front: half of what is left, the last ones singly. On cache lines of
/// its own.
struct alignas(64) Part {
  std::atomic<int64_t> next{0};
  int64_t end = 0;

  void work(FunctionRef<void(int64_t, int64_t)> on_pieces) {
    for (int64_t seen = next.load(std::memory_order_relaxed); seen < end; seen = next.load(std::memory_order_relaxed)) {
      const int64_t some = std::max<int64_t>(1, (end - seen) / 2);
      if (next.compare_exchange_weak(seen, seen + some, std::memory_order_relaxed)) on_pieces(seen, seen + some);
    }
  }
};

}  // namespace

struct LoopPool::Arena {
  explicit Arena(int threads) : threads(threads), parts(static_cast<size_t>(threads)) {}

  tbb::task_arena threads;
  std::vector<Part> parts;  // of each thread
};

// oneTBB has as many workers as the machine has cores, and prints a warning when an arena asks for more.
LoopPool::LoopPool(int64_t threads)
    : arena_(std::make_unique<Arena>(std::min(static_cast<int>(threads), tbb::info::default_concurrency()))) {}

LoopPool::~LoopPool() = default;

void LoopPool::run(int64_t pieces, FunctionRef<void(int64_t, int64_t)> work) {
  std::vector<Part>& parts = arena_->parts;
  const auto count = static_cast<int64_t>(parts.size());
  for (int64_t i = 0; i < count; ++i) {
    Part& part = parts[static_cast<size_t>(i)];
    part.next.store(pieces * i / count, std::memory_order_relaxed);
    part.end = pieces * (i + 1) / count;
  }
  const auto take_part = [&](size_t /*task*/) {
    const auto own = static_cast<size_t>(tbb::this_task_arena::current_thread_index());
    for (size_t i = 0; i < parts.size(); ++i) parts[(own + i) % parts.size()].work(work);
  };
  arena_->threads.execute([&] { tbb::parallel_for(size_t{0}, parts.size(), take_part, tbb::simple_partitioner()); });
}

}  // namespace sluice::models
