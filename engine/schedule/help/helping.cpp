#include "engine/schedule/help/helping.h"

#include <utility>

#include "engine/schedule/help/askers.h"

namespace sluice::engine {

Helping::Helping(GroupAsker& asker, int path, World world) : asker_(asker), path_(path), owners_(ranks_to_ask(world)) {}

void Helping::begin_round(Round round) {
  round_ = round;
  next_ = 0;
}

void Helping::ask(Credit credit) {
  asked_ = true;
  asked_in_ = round_;
  credit_ = std::move(credit);
  asker_.ask(path_, owners_[next_], round_);
}

std::optional<Helping::Prompt> Helping::take_prompt() {
  std::optional<GroupAsker::Answer> answer = asker_.take_answer(path_);
  if (!answer) return std::nullopt;
  asked_ = false;
  Credit credit = std::exchange(credit_, {});
  if (!answer->group) {
    if (asked_in_ == round_) ++next_;  // an answer may be of the round before
    return std::nullopt;
  }
  makes_for_.emplace(answer->group->index, answer->owner);
  return Prompt{std::move(*answer->group), std::move(credit)};
}

void Helping::give_back(Group group, Credit credit) {
  const int owner = makes_for_.extract(group.index).mapped();
  ++count_;
  asker_.give_back(path_, owner, group, std::move(credit));
}

}  // namespace sluice::engine
