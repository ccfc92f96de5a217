#include "engine/schedule/stages/sample_credit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

void SampleCredit::start(Key key, int64_t prompt, int64_t most) {
  const int64_t tokens = least(prompt, most);
  const bool is_new = holdings_.emplace(key, Holding{.held = tokens, .need = std::min(most, prompt + 1), .most = most}).second;
  SLUICE_CHECK(is_new, "a sample starts twice");
}

void SampleCredit::set_need(Key key, int64_t tokens) {
  Holding& holding = holdings_.at(key);
  SLUICE_CHECK(!holding.ended && tokens <= holding.most, "a sample needs more tokens than it may have");
  holding.need = tokens;
}

void SampleCredit::end(Key key, int64_t tokens, Rollout::Sink& sink) {
  Holding& holding = holdings_.at(key);
  SLUICE_CHECK(!holding.ended && tokens <= holding.most, "a sample ends twice, or with more tokens than it may have");
  holding.ended = true;
  holding.need = tokens;
  if (holding.fed() && holding.held > tokens) sink.return_credit(key.group, holding.held - tokens);
  holding.held = std::min(holding.held, tokens);
}

SampleCredit::Changes SampleCredit::settle(Rollout::Sink& sink) {
  Changes changes;
  refused_ = false;
  for (Holdings::value_type& sample : holdings_) {
    if (sample.second.fed()) continue;
    if (sample.second.preempted && refused_) break;
    if (!feed(sample, sink, changes)) break;  // nobody younger holds anything now
  }
  return changes;
}

// False: it was refused, and holds nothing any more.
bool SampleCredit::feed(Holdings::value_type& sample, Rollout::Sink& sink, Changes& changes) {
  auto& [key, holding] = sample;
  const int64_t wanted = (holding.ended ? holding.need : std::min(holding.most, holding.need + room_ - 1)) - holding.held;
  while (!sink.take_credit(key.group, wanted)) {
    refused_ = true;
    Holdings::value_type* const victim = youngest_holder();
    if (victim == nullptr || victim->first < key) return false;
    preempt(*victim, sink, changes);
    if (victim == &sample) return false;
  }
  holding.held += wanted;
  if (std::exchange(holding.preempted, false) && !holding.ended) changes.restarted.push_back(key);
  return true;
}

// Null: nobody holds anything.
SampleCredit::Holdings::value_type* SampleCredit::youngest_holder() {
  const auto found =
      std::find_if(holdings_.rbegin(), holdings_.rend(), [](const auto& sample) { return sample.second.held > 0; });
  return found == holdings_.rend() ? nullptr : &*found;
}

void SampleCredit::preempt(Holdings::value_type& sample, Rollout::Sink& sink, Changes& changes) {
  auto& [key, holding] = sample;
  sink.return_credit(key.group, std::exchange(holding.held, 0));
  holding.preempted = true;
  if (!holding.ended) changes.preempted.push_back(key);
}

bool SampleCredit::holds(Key key) const { return holdings_.at(key).fed(); }

bool SampleCredit::may_finish(int64_t group) const {
  const auto first = holdings_.lower_bound({group, 0});
  const auto end = holdings_.upper_bound({group, std::numeric_limits<int64_t>::max()});
  if (first == end || (order_ == GroupOrder::kOldestFirst && first != holdings_.begin())) return false;
  return std::all_of(first, end, [](const auto& sample) { return sample.second.ended && sample.second.fed(); });
}

void SampleCredit::forget(int64_t group) {
  holdings_.erase(holdings_.lower_bound({group, 0}), holdings_.upper_bound({group, std::numeric_limits<int64_t>::max()}));
}

bool SampleCredit::blocked() const {
  return !holdings_.empty() &&
         std::none_of(holdings_.begin(), holdings_.end(), [](const auto& s) { return !s.second.ended && s.second.fed(); });
}

}  // namespace sluice::engine
