#include "engine/schedule/state/milestone.h"

#include <utility>

namespace sluice::engine {

void Milestone::when_reached(int64_t count, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  if (reached_.load() >= count || count >= let_through_) {
    action();
  } else {
    waiting_.emplace(count, std::move(action));
  }
}

void Milestone::reach(int64_t count) {
  const std::lock_guard lock(mutex_);
  if (count <= reached_.load()) return;
  reached_.store(count);
  const auto end = waiting_.upper_bound(count);
  for (auto it = waiting_.begin(); it != end; ++it) it->second();
  waiting_.erase(waiting_.begin(), end);
}

void Milestone::let_through(int64_t count) {
  const std::lock_guard lock(mutex_);
  let_through_ = count;
  const auto begin = waiting_.lower_bound(count);
  for (auto it = begin; it != waiting_.end(); ++it) it->second();
  waiting_.erase(begin, waiting_.end());
}

}  // namespace sluice::engine
