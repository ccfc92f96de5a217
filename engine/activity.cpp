#include "engine/activity.h"

#include <exception>
#include <utility>

namespace sluice::engine {

Activity::Scope::Scope(Activity& activity, WorkClass work_class, Slice slice)
    : activity_(activity), class_(work_class), slice_(std::move(slice)) {
  slice_.begin_us = activity_.now_us();
  activity_.change(class_, +1, slice_.executor, slice_.node);
}

Activity::Scope::~Scope() noexcept(false) {
  activity_.change(class_, -1, slice_.executor, {});
  slice_.end_us = activity_.now_us();
  if (activity_.trace_ == nullptr || std::uncaught_exceptions() > 0) return;
  activity_.trace_->add(std::move(slice_));
}

BusySeconds Activity::take() {
  const std::lock_guard lock(mutex_);
  account();
  return std::exchange(seconds_, {});
}

std::vector<std::string> Activity::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void Activity::change(WorkClass work_class, int by, int executor, const std::string& node) {
  const std::lock_guard lock(mutex_);
  account();
  busy_[static_cast<size_t>(work_class)] += by;
  current_[static_cast<size_t>(executor)] = node;
}

void Activity::account() {
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - std::exchange(last_change_, now)).count();
  const bool rollout = busy_[static_cast<size_t>(WorkClass::kRollout)] > 0;
  const bool train = busy_[static_cast<size_t>(WorkClass::kTrain)] > 0;
  if (rollout) seconds_.rollout += passed;
  if (train) seconds_.train += passed;
  if (rollout && train) seconds_.overlap += passed;
}

int64_t Activity::now_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start_).count();
}

}  // namespace sluice::engine
