#include "models/kernels/parallel.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/machine.h"
#include "models/kernels/loop_pool.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sluice::models {
namespace {

constexpr int64_t kRanges = 4;  // of a thread: what is left to wait for is at most a quarter of its share

/// The threads of one thread's loops.
struct Loops {
  int64_t threads = available_cores();
  std::unique_ptr<LoopPool> pool;
  bool inside = false;

  LoopPool& ready_pool() {
    if (!pool) pool = std::make_unique<LoopPool>(threads);
    return *pool;
  }
};

Loops& loops_of_this_thread() {
  thread_local Loops loops;
  return loops;
}

// What is inside a loop does not start one: a thread that waits for that could take a range of the outer loop in the middle of its own.
class Inside {
 public:
  Inside() : had_(std::exchange(loops_of_this_thread().inside, true)) {}
  ~Inside() { loops_of_this_thread().inside = had_; }

 private:
  bool had_;
};

// ThreadSanitizer does not see how oneTBB, which is built without it, hands work over and waits for it.
class Handover {
 public:
#ifdef __SANITIZE_THREAD__
  void give() { __tsan_release(this); }
  void take() { __tsan_acquire(this); }
#else
  void give() {}
  void take() {}
#endif
};

}  // namespace

void parallel_ranges(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work) {
  if (count <= 0) return;
  Loops& loops = loops_of_this_thread();
  if (count <= grain || loops.threads == 1 || loops.inside) return work(0, count);
  const int64_t grains = (count + grain - 1) / grain, ranges = std::min(grains, loops.threads * kRanges);
  static Handover begin, end;  // not in the closure, which a thread may read only behind begin
  const auto work_on = [&](int64_t range) {
    begin.take();
    const Inside inside;
    work(grains * range / ranges * grain, std::min(count, grains * (range + 1) / ranges * grain));
    end.give();
  };
  begin.give();  // behind the last write to what the threads read
  loops.ready_pool().run(ranges, work_on);
  end.take();
}

int64_t loop_threads() { return loops_of_this_thread().threads; }

void set_loop_threads(int64_t threads) {
  Loops& loops = loops_of_this_thread();
  if (threads == loops.threads) return;
  loops.threads = threads;
  loops.pool.reset();
}

}  // namespace sluice::models
