#include "comm/gradient_group.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/numbers/crc32c.h"
#include "base/process/no_pipe_signal.h"
#include "comm/all_gather.h"
#include "comm/exchange.h"
#include "comm/gradient_cut.h"
#include "comm/gradient_sum.h"

namespace sluice::comm {

// What the thread works with.
class GlooGradients::Worker {
 public:
  Worker(std::shared_ptr<c10d::Backend> ranks, int slots, int64_t most_staged, Reach reach)
      : cut_({ranks->getRank(), ranks->getSize()}, slots, most_staged / static_cast<int64_t>(sizeof(float))),
        transfers_(std::move(ranks), GradientSum::kBatches, std::move(reach)),
        sum_(cut_, transfers_) {}

  void announce(Announcement announcement) {
    if (announced_ == 0) transfers_.find_near();
    announcement.sequence = announced_++;
    comm::announce(cut_.world(), transfers_, announcement);
  }
  GradientSum& sum() { return sum_; }
  void all_gather(float* values, const std::vector<int64_t>& begins) {
    comm::all_gather(cut_.world(), transfers_, values, begins);
  }
  void exchange(const std::vector<Stretch>& out, const std::vector<Stretch>& in) { comm::exchange(transfers_, out, in); }
  void give_up() { transfers_.give_up(); }
  void close() { transfers_.close(); }

 private:
  const GradientCut cut_;
  Transfers transfers_;
  GradientSum sum_;
  int64_t announced_ = 0;
};

GlooGradients::GlooGradients(std::shared_ptr<c10d::Backend> ranks, int slots, Failed failed, int64_t most_staged, Reach reach)
    : failed_(std::move(failed)),
      worker_(std::make_unique<Worker>(std::move(ranks), slots, most_staged, std::move(reach))),
      thread_([this] { carry_out(); }) {}

GlooGradients::~GlooGradients() {
  {
    const std::lock_guard lock(mutex_);
    destroyed_ = true;
  }
  end();
}

void GlooGradients::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  worker_->give_up();
}

void GlooGradients::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  end();
}

// Waits for: the thread to be done with what was given. Ends when: it is; abandon() ends whatever it waits for.
void GlooGradients::forget() {
  abandon();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_; });
}

bool GlooGradients::abandoned() {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

void GlooGradients::all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) {
  const std::vector<float*> own(parts.begin(), parts.end());
  begin({{.operation = Announcement::Operation::kAllReduce, .floats = count},
         [own, count](Worker& worker) { worker.sum().all_reduce(own, count); },
         std::move(done)});
}

void GlooGradients::reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) {
  const std::vector<float*> own(parts.begin(), parts.end());
  begin({{.operation = Announcement::Operation::kReduceScatter, .floats = count},
         [own, count, added = std::move(added)](Worker& worker) { worker.sum().reduce_scatter(own, count, added); },
         std::move(done)});
}

void GlooGradients::all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) {
  const std::string_view shares(reinterpret_cast<const char*>(begins.data()), begins.size() * sizeof(int64_t));
  const Announcement announcement{
      .operation = Announcement::Operation::kAllGather, .floats = begins.back(), .shares = crc32c(shares)};
  begin({announcement, [values, begins = std::move(begins)](Worker& worker) { worker.all_gather(values, begins); },
         std::move(done)});
}

// How much goes where each two ranks know alone.
void GlooGradients::exchange(std::vector<Stretch> out, std::vector<Stretch> in, std::function<void()> done) {
  begin({{.operation = Announcement::Operation::kExchange},
         [out = std::move(out), in = std::move(in)](Worker& worker) { worker.exchange(out, in); },
         std::move(done)});
}

void GlooGradients::begin(Operation operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!abandoned_) {
      waiting_.push_back(std::move(operation));
      changed_.notify_all();
      return;
    }
  }
  if (operation.done) operation.done();
}

void GlooGradients::carry_out() {
  serve();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
}

void GlooGradients::serve() {
  const NoPipeSignal no_signal;  // of a rank that is gone
  std::function<void()> done;    // of what is under way
  try {
    while (auto next = take()) {
      done = std::move(next->done);
      worker_->announce(next->announcement);
      next->run(*worker_);
      if (done) std::exchange(done, {})();
    }
  } catch (...) {
    fail(std::current_exception(), done != nullptr);
  }
  wait_until_abandoned();
  if (!abandoned()) return;
  if (done) done();
  let_go();
}

// Waits for: abandon(), after a failure. Ends when: it was called, or this is destroyed.
void GlooGradients::wait_until_abandoned() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return abandoned_ || destroyed_; });
}

// What waited after what failed, or was given up.
void GlooGradients::let_go() {
  std::deque<Operation> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(waiting_);
  }
  for (const Operation& operation : left)
    if (operation.done) operation.done();
}

// Waits for: something to carry out. Ends when: there is one, or this is destroyed; nothing then.
std::optional<GlooGradients::Operation> GlooGradients::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
  if (ended_) return std::nullopt;
  Operation next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

void GlooGradients::fail(std::exception_ptr reason, bool is_awaited) {
  worker_->close();  // the gradients belong to the caller again before it hears of the failure
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;  // given up by the destructor, not failed
  }
  if (wait_for_somebody(is_awaited)) failed_(std::move(reason));
}

// Waits for: an operation that somebody waits for, after a failure. Ends when: there is one; or, with false, nobody can ask any
// more.
bool GlooGradients::wait_for_somebody(bool is_awaited) {
  const auto waits = [&] {
    return is_awaited || std::ranges::any_of(waiting_, [](const Operation& operation) { return operation.done != nullptr; });
  };
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waits() || abandoned_ || destroyed_; });
  return !abandoned_ && !destroyed_;
}

}  // namespace sluice::comm
