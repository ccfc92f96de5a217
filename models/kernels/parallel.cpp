#include "models/kernels/parallel.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <utility>

#include "base/process/machine.h"
#include "models/kernels/loop_pool.h"
#include "models/kernels/loop_sharing.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sluice::models {
namespace {

constexpr int64_t kPieces = 4;  // of a thread's part of a loop
constexpr int64_t kGrains = 4;  // of a piece, if no thread goes without one: loops pack what they read, once for each range

/// The threads of one thread's loops.
struct Loops {
  int64_t threads = available_cores();
  std::unique_ptr<LoopPool> pool;
  LoopSharing sharing;
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

// What is inside a loop does not start one: a thread that waits for that could take a range of the outer loop in the middle of
// its own.
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

int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

/// Adds the processor time that its thread spends while it lives to a sum; null: to none.
class WorkedTime {
 public:
  explicit WorkedTime(std::atomic<int64_t>* sum) : sum_(sum), begin_ns_(sum != nullptr ? now_ns(CLOCK_THREAD_CPUTIME_ID) : 0) {}
  ~WorkedTime() {
    if (sum_ != nullptr) sum_->fetch_add(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns_, std::memory_order_relaxed);
  }
  WorkedTime(const WorkedTime&) = delete;
  WorkedTime& operator=(const WorkedTime&) = delete;

 private:
  std::atomic<int64_t>* const sum_;
  const int64_t begin_ns_;
};

// worked_ns: gets the processor time of all threads; null: nobody asks.
void share(LoopPool& pool, int64_t pieces, FunctionRef<void(int64_t, int64_t)> work, std::atomic<int64_t>* worked_ns) {
  static Handover begin, end;  // not in the closure, which a thread may read only after begin
  const auto work_on = [&](int64_t first, int64_t last) {
    begin.take();
    const Inside inside;
    {
      const WorkedTime worked(worked_ns);
      work(first, last);
    }
    end.give();
  };
  begin.give();  // after the last write to what the threads read
  pool.run(pieces, work_on);
  end.take();
}

int64_t pieces_for(int64_t grains, int64_t threads) {
  const int64_t each = std::clamp<int64_t>(grains / (threads * kGrains), 1, kPieces);
  return std::min(grains, threads * each);
}

}  // namespace

void parallel_ranges(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> work) {
  if (count <= 0) return;
  Loops& loops = loops_of_this_thread();
  if (count <= grain || loops.threads == 1 || loops.inside) return work(0, count);
  const int64_t grains = (count + grain - 1) / grain, pieces = pieces_for(grains, loops.threads);
  const auto work_on = [&](int64_t first, int64_t last) {
    work(grains * first / pieces * grain, std::min(count, grains * last / pieces * grain));
  };
  const int64_t begin_ns = now_ns(CLOCK_MONOTONIC);
  const LoopSharing::Loop loop = loops.sharing.next(begin_ns);
  if (loop == LoopSharing::Loop::kAlone) {
    const Inside inside;
    return work_on(0, pieces);
  }
  std::atomic<int64_t> worked_ns = 0;
  const bool measures = loop == LoopSharing::Loop::kMeasured;
  share(loops.ready_pool(), pieces, work_on, measures ? &worked_ns : nullptr);
  if (!measures) return;
  const int64_t end_ns = now_ns(CLOCK_MONOTONIC);
  loops.sharing.measured(end_ns, end_ns - begin_ns, worked_ns);
}

int64_t loop_threads() { return loops_of_this_thread().threads; }

void set_loop_threads(int64_t threads) {
  Loops& loops = loops_of_this_thread();
  if (threads == loops.threads) return;
  loops.threads = threads;
  loops.pool.reset();
  loops.sharing = {};
}

}  // namespace sluice::models
