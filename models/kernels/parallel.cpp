#include "models/kernels/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/machine.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sluice::models {
namespace {

namespace tbb = oneapi::tbb;

constexpr int64_t kRanges = 4;  // of a thread: what is left to wait for is at most a quarter of its share

/// The threads of one thread's loops.
struct Loops {
  int64_t threads = available_cores();
  std::unique_ptr<tbb::task_arena> arena;
  bool inside = false;

  tbb::task_arena& ready_arena() {
    if (!arena) arena = std::make_unique<tbb::task_arena>(static_cast<int>(threads));
    return *arena;
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

// ThreadSanitizer does not see how oneTBB's library, which is built without it, hands work over and waits for it.
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
  begin.give();
  loops.ready_arena().execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, ranges),
        [&](const tbb::blocked_range<int64_t>& some) {
          begin.take();
          const Inside inside;
          for (int64_t range = some.begin(); range < some.end(); ++range)
            work(grains * range / ranges * grain, std::min(count, grains * (range + 1) / ranges * grain));
          end.give();
        },
        tbb::simple_partitioner());
  });
  end.take();
}

int64_t loop_threads() { return loops_of_this_thread().threads; }

void set_loop_threads(int64_t threads) {
  Loops& loops = loops_of_this_thread();
  if (threads == loops.threads) return;
  loops.threads = threads;
  loops.arena.reset();
}

}  // namespace sluice::models
