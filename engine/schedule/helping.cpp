#include "engine/schedule/helping.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr int kMostAsked = 8;  // in a round: of a thousand ranks nobody asks all

// Of ranks that only sample each has some of the owners that the next ones do not have; then come others.
std::vector<int> owners_of_sampler(World world) {
  const int samplers = world.size - world.owners(), own = world.rank - world.owners();
  std::vector<int> owners;
  for (int owner = own % world.owners(); owner < world.owners(); owner += samplers) owners.push_back(owner);
  const int others = world.owners() - static_cast<int>(owners.size()), asked = std::min(others, kMostAsked);
  for (int i = 1; std::ssize(owners) < asked + (world.owners() - others); ++i) {
    const int owner = (owners.front() + i) % world.owners();
    if (std::ranges::find(owners, owner) == owners.end()) owners.push_back(owner);
  }
  return owners;
}

}  // namespace

std::vector<int> owners_to_ask(World world) {
  if (!world.owns_slots()) return owners_of_sampler(world);
  if (world.owners() < world.size) return {};
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
  asked_in_ = place_;
  credit_ = std::move(credit);
  help_.ask(path_, owners_[next_], place_);
}

std::optional<Helping::Prompt> Helping::take_prompt() {
  std::optional<MutualHelp::Answer> answer = help_.take_answer(path_);
  if (!answer) return std::nullopt;
  asked_ = false;
  Credit credit = std::exchange(credit_, {});
  if (!answer->group) {
    if (asked_in_ == place_) ++next_;  // an answer may be of the round before
    return std::nullopt;
  }
  makes_for_.emplace(answer->group->index, answer->owner);
  return Prompt{std::move(*answer->group), std::move(credit)};
}

void Helping::decline(int64_t group) { help_.decline(path_, makes_for_.extract(group).mapped(), place_.iteration, group); }

void Helping::give_back(Group group, Credit credit) {
  const int owner = makes_for_.extract(group.index).mapped();
  ++count_;
  help_.give_back(path_, owner, group, std::move(credit));
}

}  // namespace sluice::engine
