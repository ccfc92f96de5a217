#include "engine/schedule/help/given_away.h"

#include <utility>

namespace sluice::engine {

void GivenAway::give(const GroupOwner::Question& question, Group prompt) {
  take_over_.given_to(prompt.index, question.rank);
  owner_.give(path_, question, prompt);
  const int64_t index = prompt.index;
  given_.emplace(index, Given{std::move(prompt), question.rank});
}

void GivenAway::fetch(int64_t iteration, GroupOwner::Made made, Credit credit) {
  owner_.fetch(path_, iteration, made);
  fetching_.emplace(made.group, OnItsWay{std::move(credit), std::move(made.metrics)});
}

std::optional<GivenAway::Fetched> GivenAway::take_fetched() {
  if (!fetched_.empty()) {
    std::optional<Fetched> first = std::move(fetched_.front());
    fetched_.pop_front();
    return first;
  }
  std::optional<Group> group = owner_.take_fetched(path_);
  if (!group) return std::nullopt;
  given_.erase(group->index);
  OnItsWay came = std::move(fetching_.extract(group->index).mapped());
  return Fetched{std::move(*group), std::move(came.credit), std::move(came.metrics)};
}

std::optional<GivenAway::Declined> GivenAway::take_declined() {
  auto declined = owner_.take_declined(path_);
  if (!declined) return std::nullopt;
  take_over_.drop(declined->group);
  const int slot = given_.extract(declined->group).mapped().prompt.slot;
  return Declined{declined->group, slot, std::move(declined->metrics)};
}

bool GivenAway::learn() {
  while (auto made = owner_.take_made(path_)) take_over_.made_elsewhere(std::move(*made));
  const size_t before = again_.size();
  while (const auto rank = owner_.take_lost(path_)) lose(*rank);
  return again_.size() > before;
}

// Nobody has what it was given, unless it is here already.
void GivenAway::lose(int rank) {
  std::deque<Fetched> came;
  while (auto fetched = take_fetched()) came.push_back(std::move(*fetched));
  fetched_ = std::move(came);
  for (auto given = given_.begin(); given != given_.end();) {
    if (given->second.rank != rank) {
      ++given;
      continue;
    }
    const int64_t group = given->first;
    take_over_.expect_again(group);
    fetching_.erase(group);
    again_.emplace(group, std::move(given->second.prompt));
    given = given_.erase(given);
  }
}

std::optional<Group> GivenAway::take_again() {
  if (again_.empty()) return std::nullopt;
  return std::move(again_.extract(again_.begin()).mapped());
}

}  // namespace sluice::engine
