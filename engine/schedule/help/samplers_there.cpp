#include "engine/schedule/help/samplers_there.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr int64_t kNotYet = std::numeric_limits<int64_t>::max();
constexpr const char* kComesIn = "comes in: ";  // and the rank; the number is that of the process

}  // namespace

SamplersThere::SamplersThere(RunState& state, Parts parts) : state_(state), parts_(std::move(parts)) {
  for (int rank = state_.world.owners(); rank < state_.world.size; ++rank) there_[rank] = {.samples_from = parts_.begun};
}

// The roll call goes on without the lock: who waited for that rank may let others in.
void SamplersThere::lose(int rank, const std::string& why) {
  bool none_is_left = false;
  {
    const std::lock_guard lock(mutex_);
    const auto lost = there_.extract(rank);
    if (lost && lost.mapped().samples_from != kNotYet) ++state_.lost_ranks;
    parts_.publications.lose(rank);
    parts_.owner.lose(rank);
    if (parts_.returning && lost) parts_.returning->lose(rank, lost.mapped().incarnation);
    none_is_left = !some_sample(state_.log.reported());
  }
  if (none_is_left) {
    note_none_is_left(state_, why + ", and no other rank is left that samples the next iteration");
    parts_.drop_in_flight();
  }
  parts_.roll_call.lose(rank);
}

void SamplersThere::note_none_is_left(RunState& state, const std::string& why) {
  try {
    throw UserError(why);
  } catch (...) {
    state.cut_short.capture();
  }
}

bool SamplersThere::some_sample(int64_t iteration) const {
  return std::ranges::any_of(there_, [&](const auto& one) { return one.second.samples_from <= iteration; });
}

void SamplersThere::take_back(int rank, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  there_[rank] = {.incarnation = incarnation, .samples_from = kNotYet};
}

void SamplersThere::name_those_who_wait(int64_t iteration, Contribution& mine) {
  if (!parts_.returning) return;
  const bool ends_before = first_iteration(iteration) >= state_.iterations || state_.asked_to_end || state_.ends_early();
  for (const ReturningRank& one : parts_.returning->waiting()) {
    if (ends_before) {
      if (!is_named(one)) parts_.returning->answer(one.rank, std::nullopt);
      continue;
    }
    note_named(one);
    mine.push_back(sum_part(kComesIn + std::to_string(one.rank), static_cast<double>(one.incarnation)));
  }
}

void SamplersThere::note_named(const ReturningRank& rank) {
  const std::lock_guard lock(mutex_);
  named_[rank.rank] = rank.incarnation;
}

// That iteration may not be complete yet on all ranks: who was named in it is let in then, or told by ReturningRanks::end().
bool SamplersThere::is_named(const ReturningRank& rank) {
  const std::lock_guard lock(mutex_);
  const auto found = named_.find(rank.rank);
  return found != named_.end() && found->second == rank.incarnation;
}

void SamplersThere::let_in_those_named(int64_t iteration, Contribution& of_all) {
  const auto names_one = [](const Part& part) { return part.name.starts_with(kComesIn); };
  for (const Part& part : of_all) {
    if (!names_one(part)) continue;
    let_in({.rank = std::stoi(part.name.substr(std::string(kComesIn).size())),
            .incarnation = static_cast<int64_t>(part.numbers.sum.value())},
           iteration);
  }
  std::erase_if(of_all, names_one);
}

// It may have been named twice: it was not in yet when the next iteration ended.
void SamplersThere::let_in(const ReturningRank& rank, int64_t iteration) {
  const std::lock_guard lock(mutex_);
  const auto found = there_.find(rank.rank);
  if (found == there_.end() || found->second.incarnation != rank.incarnation || found->second.samples_from != kNotYet) return;
  found->second.samples_from = first_iteration(iteration);
  parts_.publications.take_back(rank.rank, first_version(iteration));
  parts_.owner.take_back(rank.rank);
  --state_.lost_ranks;
  if (!parts_.returning) return;
  parts_.roll_call.join(rank.rank, first_iteration(iteration));
  parts_.returning->answer(rank.rank, first_version(iteration));
}

}  // namespace sluice::engine
