#include "engine/contract/columns/token_budget.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

bool TokenBudget::try_acquire(int64_t tokens) {
  SLUICE_CHECK(tokens >= 0, "negative credit");
  const std::lock_guard lock(mutex_);
  check();
  if (in_flight_ + tokens > capacity_) {
    refused_ = true;
    return false;
  }
  in_flight_ += tokens;
  peak_ = std::max(peak_, in_flight_);
  return true;
}

bool TokenBudget::has_free(int64_t tokens) noexcept {
  const std::lock_guard lock(mutex_);
  const bool free = in_flight_ + tokens <= capacity_;
  refused_ |= !free;
  return free;
}

void TokenBudget::release(int64_t tokens) noexcept {
  if (tokens == 0) return;
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    broken_ |= tokens < 0 || tokens > in_flight_;
    in_flight_ = broken_ ? 0 : in_flight_ - tokens;
    tell = std::exchange(refused_, false);
  }
  if (tell) on_release_();
}

int64_t TokenBudget::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

int64_t TokenBudget::take_peak() {
  const std::lock_guard lock(mutex_);
  check();
  return std::exchange(peak_, in_flight_);
}

// With the lock held.
void TokenBudget::check() const { SLUICE_CHECK(!broken_, "more credit was given back to the budget than was acquired"); }

struct Credit::Held {
  TokenBudget& budget;
  int64_t tokens;

  ~Held() { budget.release(tokens); }
};

Credit::Credit(TokenBudget& budget, int64_t tokens) : held_(new Held{budget, tokens}) {}

void Credit::give_back(int64_t tokens) {
  SLUICE_CHECK(held_ != nullptr && tokens >= 0 && tokens <= held_->tokens, "more credit is given back than is held");
  held_->tokens -= tokens;
  held_->budget.release(tokens);
}

bool Credit::try_grow(int64_t tokens) {
  SLUICE_CHECK(held_ != nullptr, "a credit that was never taken grows");
  if (!held_->budget.try_acquire(tokens)) return false;
  held_->tokens += tokens;
  return true;
}

int64_t Credit::tokens() const { return held_ == nullptr ? 0 : held_->tokens; }

}  // namespace sluice::engine
