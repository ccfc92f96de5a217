#include "engine/ranks/roll_call.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "engine/ranks/contribution_bytes.h"

namespace sluice::engine {
namespace {

enum class RollKind : uint8_t { kTold, kInterrupted };

}  // namespace

RollCall::RollCall(Mail& mail, const std::vector<int>& samplers, int64_t begun) : mail_(mail) {
  for (const int rank : samplers) expected_[rank] = begun;
}

void RollCall::listen(std::function<void()> interrupted) {
  interrupted_ = std::move(interrupted);
  mail_.receive(Mail::Channel::kRollCall,
                [self = shared_from_this()](int from, const std::string& message) { self->hear(from, message); });
}

void RollCall::tell(int64_t iteration, const Contribution& own, const std::map<int, Contribution>& of_rollouts,
                    const std::string& text) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(RollKind::kTold));
  bytes.number(iteration);
  write_contribution(bytes, own);
  bytes.number(static_cast<uint64_t>(of_rollouts.size()));
  for (const auto& [node, contribution] : of_rollouts) {
    bytes.number(int64_t{node});
    write_contribution(bytes, contribution);
  }
  bytes.raw(text);
  mail_.send(0, Mail::Channel::kRollCall, bytes.take());
}

void RollCall::tell_of_interrupt() {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(RollKind::kInterrupted));
  mail_.send(0, Mail::Channel::kRollCall, bytes.take());
}

void RollCall::hear(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = static_cast<RollKind>(bytes.number<uint8_t>());
  if (kind == RollKind::kInterrupted) {
    const std::lock_guard lock(mutex_);
    if (!over_) interrupted_();
    return;
  }
  SLUICE_CHECK(kind == RollKind::kTold, "a message of the roll call that is none");
  const int64_t iteration = bytes.whole_number();
  Told told;
  told.own = read_contribution(bytes);
  for (uint64_t count = bytes.number<uint64_t>(); count > 0; --count) {
    const auto node = static_cast<int>(bytes.whole_number());
    told.of_rollouts[node] = read_contribution(bytes);
  }
  told.texts.emplace_back(bytes.rest());
  take(from, iteration, std::move(told));
}

void RollCall::take(int from, int64_t iteration, Told told) {
  std::vector<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    if (over_ || iteration > last_ || !expected_.contains(from)) return;
    Entry& entry = entries_[iteration];
    entry.ranks.push_back(from);
    add_contribution(entry.told.own, told.own);
    for (const auto& [node, contribution] : told.of_rollouts) add_contribution(entry.told.of_rollouts[node], contribution);
    std::ranges::move(told.texts, std::back_inserter(entry.told.texts));
    ready = take_complete();
  }
  call(std::move(ready));
}

void RollCall::when_told(int64_t iteration, bool is_last, Done done) {
  std::vector<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    if (over_ || iteration > last_) {
      ready.push_back({.told = {}, .waiting = {std::move(done)}});
    } else {
      Entry& entry = entries_[iteration];
      entry.waiting.push_back(std::move(done));
      entry.is_last = entry.is_last || is_last;
      ready = take_complete();
    }
  }
  call(std::move(ready));
}

bool RollCall::is_complete(int64_t iteration, const Entry& entry) const {
  return std::ranges::all_of(expected_, [&](const auto& rank) {
    return rank.second > iteration || std::ranges::find(entry.ranks, rank.first) != entry.ranks.end();
  });
}

// With the lock.
std::vector<RollCall::Ready> RollCall::take_complete() {
  std::vector<Ready> ready;
  for (auto& [iteration, entry] : entries_) {
    if (!entry.waiting.empty() && is_complete(iteration, entry))
      ready.push_back({.told = entry.told, .waiting = std::exchange(entry.waiting, {})});
  }
  std::erase_if(entries_, [this](const auto& entry) {
    return entry.second.is_last && entry.second.waiting.empty() && is_complete(entry.first, entry.second);
  });
  return ready;
}

void RollCall::call(std::vector<Ready> ready) {
  for (const Ready& entry : ready)
    for (const Done& done : entry.waiting) done(entry.told);
}

void RollCall::lose(int rank) {
  std::vector<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    expected_.erase(rank);
    if (!over_) ready = take_complete();
  }
  call(std::move(ready));
}

void RollCall::join(int rank, int64_t iteration) {
  const std::lock_guard lock(mutex_);
  expected_[rank] = iteration;
}

void RollCall::abandon_behind(int64_t last) {
  std::vector<Ready> ready;
  {
    const std::lock_guard lock(mutex_);
    last_ = std::min(last_, last);
    for (auto& [iteration, entry] : entries_) {
      if (iteration > last_) ready.push_back({.told = {}, .waiting = std::move(entry.waiting)});
    }
    std::erase_if(entries_, [this](const auto& entry) { return entry.first > last_; });
  }
  call(std::move(ready));
}

void RollCall::forget() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  entries_.clear();
}

}  // namespace sluice::engine
