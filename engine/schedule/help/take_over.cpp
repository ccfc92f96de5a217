#include "engine/schedule/help/take_over.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

void TakeOver::made_here(Group group, Credit making) {
  const int64_t index = group.index;
  complete_.emplace(index, Here{std::move(group), std::move(making)});
}

void TakeOver::made_elsewhere(GroupOwner::Made made) {
  const auto maker = makers_.find(made.group);
  SLUICE_CHECK(maker != makers_.end() && maker->second == made.rank, "rank " + std::to_string(made.rank) + " has made group " +
                                                                         std::to_string(made.group) + ", which it was not given");
  const int64_t index = made.group;
  complete_.emplace(index, std::move(made));
}

void TakeOver::drop(int64_t group) {
  std::erase(expected_, group);
  makers_.erase(group);
}

void TakeOver::expect_again(int64_t group) {
  makers_.erase(group);
  complete_.erase(group);
  const auto behind = std::ranges::lower_bound(expected_, group);
  if (behind == expected_.end() || *behind != group) expected_.insert(behind, group);
}

int64_t TakeOver::tokens_of(const Complete& complete) {
  if (const auto* made = std::get_if<GroupOwner::Made>(&complete)) return made->tokens;
  return static_cast<int64_t>(std::get<Here>(complete).group.layout.tokens());
}

std::optional<int64_t> TakeOver::next_tokens() const {
  if (expected_.empty()) return std::nullopt;
  const auto next = complete_.find(expected_.front());
  if (next == complete_.end()) return std::nullopt;
  return tokens_of(next->second);
}

bool TakeOver::fits() const {
  const std::optional<int64_t> tokens = next_tokens();
  return tokens && trained_.has_free(*tokens);
}

std::optional<TakeOver::Taken> TakeOver::take() {
  const std::optional<int64_t> tokens = next_tokens();
  if (!tokens || !trained_.try_acquire(*tokens)) return std::nullopt;
  const int64_t index = expected_.front();
  expected_.pop_front();
  makers_.erase(index);
  Complete complete = std::move(complete_.extract(index).mapped());
  Credit credit(trained_, *tokens);
  if (auto* here = std::get_if<Here>(&complete)) return Taken{std::move(here->group), std::move(credit)};
  return Taken{std::get<GroupOwner::Made>(std::move(complete)), std::move(credit)};
}

void TakeOver::show() {
  const std::optional<int64_t> tokens = next_tokens();
  shown_tokens_ = tokens.value_or(0);
  const auto maker = expected_.empty() || tokens ? makers_.end() : makers_.find(expected_.front());
  shown_group_ = expected_.empty() ? -1 : expected_.front();
  shown_rank_ = maker == makers_.end() ? -1 : maker->second;
}

std::string TakeOver::waits_for() const {
  if (const int rank = waits_for_rank(); rank >= 0)
    return "group " + std::to_string(shown_group_) + ", which rank " + std::to_string(rank) + " makes";
  return std::to_string(waits_for_tokens()) + " tokens of credit to train on: " + std::to_string(trained_.in_flight()) + " of " +
         std::to_string(trained_.capacity()) + " are in flight";
}

}  // namespace sluice::engine
