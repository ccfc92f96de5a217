#include "engine/schedule/state/coming_versions.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

VersionReceived ComingVersions::expect(int64_t version, VersionReceived arrived) {
  const std::lock_guard lock(mutex_);
  if (pending_ == nullptr || version > newest_) return [](const ReceivedVersion&) {};
  pending_->enter();
  coming_.emplace(next_, Coming{version, std::move(arrived)});
  return [self = shared_from_this(), number = next_++](const ReceivedVersion& received) { self->arrive(number, received); };
}

void ComingVersions::arrive(int64_t number, const ReceivedVersion& received) {
  const std::lock_guard lock(mutex_);
  const auto coming = coming_.extract(number);
  if (!coming || pending_ == nullptr) return;
  coming.mapped().arrived(received);
  pending_->leave();
}

void ComingVersions::drop_behind(int64_t last) {
  const std::lock_guard lock(mutex_);
  newest_ = std::min(newest_, last + 1);
  const size_t dropped = std::erase_if(coming_, [this](const auto& entry) { return entry.second.version > newest_; });
  for (size_t i = 0; i < dropped && pending_ != nullptr; ++i) pending_->leave();
}

void ComingVersions::forget() {
  const std::lock_guard lock(mutex_);
  pending_ = nullptr;
  coming_.clear();
}

}  // namespace sluice::engine
