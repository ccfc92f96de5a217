#include "engine/contract/world/outside_work.h"

#include <algorithm>
#include <utility>

#include "base/text/strings.h"

namespace sluice::engine {

using Clock = std::chrono::steady_clock;

std::string OutsideWork::waits_for(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::ranges::find_if(calls_, [&](const auto& call) { return call.second.node == node; });
  if (oldest == calls_.end()) return {};
  const std::chrono::duration<double> passed = Clock::now() - oldest->second.since;
  return oldest->second.what + ", for " + human_seconds(passed.count()) + " so far";
}

bool OutsideWork::wait_for_calls(std::chrono::milliseconds longest) const {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, longest, [this] { return calls_.empty(); });
}

int64_t OutsideWork::begin(Call call) {
  const std::lock_guard lock(mutex_);
  calls_.emplace(next_call_, std::move(call));
  return next_call_++;
}

// Who waits may destroy this as soon as none is under way: it sees that under the lock.
void OutsideWork::end(int64_t call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
  ended_.notify_all();
}

OutsideCall::OutsideCall(OutsideWork* work, std::string node, std::string what) : work_(work) {
  if (work_ != nullptr) number_ = work_->begin({std::move(node), std::move(what), Clock::now()});
}

OutsideCall::~OutsideCall() {
  if (work_ != nullptr) work_->end(number_);
}

}  // namespace sluice::engine
