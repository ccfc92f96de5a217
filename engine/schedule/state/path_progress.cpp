#include "engine/schedule/state/path_progress.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

PathProgress::PathProgress(const Plan& plan, int64_t begun, std::function<void()> on_change) : on_change_(std::move(on_change)) {
  for (const PlanPath& path : plan.paths)
    paths_.push_back({.leads = !path.measures(), .finished = false, .begun = begun - 1, .ended = begun - 1});
}

bool PathProgress::begin(int path, int64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    if (iteration >= horizon_) return false;
    paths_[static_cast<size_t>(path)].begun = iteration;
  }
  on_change_();
  return true;
}

bool PathProgress::leave(int path, int64_t iteration) {
  const std::lock_guard lock(mutex_);
  for (size_t other = 0; other < paths_.size(); ++other) {
    if (static_cast<int>(other) != path && paths_[other].leads && paths_[other].begun >= iteration) return false;
  }
  horizon_ = std::min(horizon_, iteration);
  return true;
}

void PathProgress::follow(int path, int64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    Path& follower = paths_[static_cast<size_t>(path)];
    follower.leads = false;
    follower.begun = iteration - 1;
  }
  on_change_();
}

void PathProgress::end(int path, int64_t iteration) {
  const std::lock_guard lock(mutex_);
  Path& of = paths_[static_cast<size_t>(path)];
  if (of.leads) of.ended = iteration;
}

void PathProgress::finish(int path) {
  {
    const std::lock_guard lock(mutex_);
    paths_[static_cast<size_t>(path)].finished = true;
  }
  on_change_();
}

bool PathProgress::is_led(int path, int64_t iteration) const {
  const std::lock_guard lock(mutex_);
  for (size_t other = 0; other < paths_.size(); ++other) {
    if (static_cast<int>(other) != path && paths_[other].leads && paths_[other].begun >= iteration) return true;
  }
  return false;
}

bool PathProgress::is_over(int path, int64_t iteration) const {
  const std::lock_guard lock(mutex_);
  for (size_t other = 0; other < paths_.size(); ++other) {
    const Path& of = paths_[other];
    if (static_cast<int>(other) != path && ((of.leads && !of.finished) || of.ended >= iteration)) return false;
  }
  return true;
}

}  // namespace sluice::engine
