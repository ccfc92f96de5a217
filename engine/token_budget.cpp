#include "engine/token_budget.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

bool TokenBudget::try_acquire(int64_t tokens) {
  SLUICE_CHECK(tokens >= 0, "negative credit");
  const std::lock_guard lock(mutex_);
  if (in_flight_ + tokens > capacity_) return false;
  in_flight_ += tokens;
  peak_ = std::max(peak_, in_flight_);
  return true;
}

void TokenBudget::release(int64_t tokens) {
  if (tokens == 0) return;
  {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(tokens > 0 && tokens <= in_flight_, "more credit is released than was acquired");
    in_flight_ -= tokens;
  }
  on_release_();
}

int64_t TokenBudget::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

int64_t TokenBudget::take_peak() {
  const std::lock_guard lock(mutex_);
  return std::exchange(peak_, in_flight_);
}

}  // namespace sluice::engine
