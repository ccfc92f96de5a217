#include "engine/schedule/helping.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr int kMostAsked = 8;  // in a round: of a thousand ranks nobody asks all

}  // namespace

std::vector<int> owners_to_ask(World world) {
  std::vector<int> owners;
  const int others = world.size - 1, asked = std::min(others, kMostAsked);
  for (int i = 0; i < asked; ++i) owners.push_back((world.rank + 1 + i * others / asked) % world.size);
  return owners;
}

Helping::Helping(MutualHelp& help, int path, World world) : help_(help), path_(path), owners_(owners_to_ask(world)) {}

void Helping::begin_round(MutualHelp::Place place) {
  place_ = place;
  next_ = 0;
}

void Helping::ask(Credit credit) {
  asked_ = true;
  credit_ = std::move(credit);
  help_.ask(path_, owners_[next_], place_);
}

std::optional<Helping::Prompt> Helping::take_prompt() {
  std::optional<MutualHelp::Answer> answer = help_.take_answer(path_);
  if (!answer) return std::nullopt;
  asked_ = false;
  Credit credit = std::exchange(credit_, {});
  if (!answer->group) {
    ++next_;
    return std::nullopt;
  }
  makes_for_.emplace(answer->group->index, answer->owner);
  return Prompt{std::move(*answer->group), std::move(credit)};
}

void Helping::give_back(Group group, Credit credit) {
  const int owner = makes_for_.extract(group.index).mapped();
  ++count_;
  help_.give_back(path_, owner, group, std::move(credit));
}

}  // namespace sluice::engine
