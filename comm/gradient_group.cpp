#include "comm/gradient_group.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <utility>

#include "base/no_pipe_signal.h"
#include "comm/gradient_cut.h"
#include "comm/gradient_sum.h"
#include "comm/transfers.h"

namespace sluice::comm {

// What the thread works with.
class GlooGradients::Worker {
 public:
  Worker(std::shared_ptr<c10d::Backend> ranks, int slots, int64_t most_staged)
      : cut_({ranks->getRank(), ranks->getSize()}, slots, most_staged / static_cast<int64_t>(sizeof(float))),
        transfers_(std::move(ranks), GradientSum::kBatches),
        sum_(cut_, transfers_) {}

  void add(const Sum& sum) { sum_.run(sum.parts, sum.count); }
  void give_up() { transfers_.give_up(); }
  void close() { transfers_.close(); }

 private:
  const GradientCut cut_;
  Transfers transfers_;
  GradientSum sum_;
};

GlooGradients::GlooGradients(std::shared_ptr<c10d::Backend> ranks, int slots, Failed failed, int64_t most_staged)
    : failed_(std::move(failed)),
      worker_(std::make_unique<Worker>(std::move(ranks), slots, most_staged)),
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

bool GlooGradients::abandoned() {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

void GlooGradients::sum(std::span<float* const> parts, int64_t count, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!abandoned_) {
      waiting_.push_back({{parts.begin(), parts.end()}, count, std::move(done)});
      changed_.notify_all();
      return;
    }
  }
  done();
}

void GlooGradients::carry_out() {
  const NoPipeSignal no_signal;  // of a rank that is gone
  std::function<void()> done;    // of the sum that is under way
  try {
    while (auto next = take()) {
      done = std::move(next->done);
      worker_->add(*next);
      std::exchange(done, {})();
    }
  } catch (...) {
    fail(std::current_exception());
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

// What waited behind the sum that failed, or that was given up.
void GlooGradients::let_go() {
  std::deque<Sum> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(waiting_);
  }
  for (const Sum& sum : left) sum.done();
}

// Waits for: a sum to carry out. Ends when: there is one, or this is destroyed; nothing then.
std::optional<GlooGradients::Sum> GlooGradients::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
  if (ended_) return std::nullopt;
  Sum next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

void GlooGradients::fail(std::exception_ptr reason) {
  worker_->close();  // the gradients belong to the caller again before it hears of the failure
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;  // given up by the destructor, not failed
  }
  failed_(std::move(reason));
}

}  // namespace sluice::comm
