#include "engine/version_gate.h"

#include <utility>

namespace sluice::engine {

void VersionGate::when_published(int64_t version, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  if (published_.load() >= version) {
    action();
  } else {
    waiting_.emplace(version, std::move(action));
  }
}

void VersionGate::publish(int64_t version) {
  {
    const std::lock_guard lock(mutex_);
    published_.store(version);
    const auto end = waiting_.upper_bound(version);
    for (auto it = waiting_.begin(); it != end; ++it) it->second();
    waiting_.erase(waiting_.begin(), end);
  }
  on_publish_();
}

}  // namespace sluice::engine
