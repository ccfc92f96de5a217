#include "engine/schedule/help/askers.h"

#include <algorithm>

namespace sluice::engine {
namespace {

constexpr int kMostAsked = 8;  // in a round: of a thousand ranks nobody asks all

}  // namespace

Asked asked_by_samplers(const Plan& plan) { return plan.expendable().any() ? Asked::kAll : Asked::kSome; }

std::vector<int> ranks_to_ask(World world) {
  if (world.owners() < world.size) return {};
  std::vector<int> ranks;
  const int others = world.size - 1, asked = std::min(others, kMostAsked);
  for (int i = 0; i < asked; ++i) ranks.push_back((world.rank + 1 + i * others / asked) % world.size);
  return ranks;
}

// Each has some that the next ones do not have; then come others.
std::vector<int> owners_to_ask(World world, Asked asked) {
  const int samplers = world.size - world.owners(), own = world.rank - world.owners();
  std::vector<int> owners;
  for (int owner = own % world.owners(); owner < world.owners(); owner += samplers) owners.push_back(owner);
  const auto others = world.owners() - std::ssize(owners);
  const auto most = std::ssize(owners) + (asked == Asked::kAll ? others : std::min<std::ptrdiff_t>(others, kMostAsked));
  for (int i = 1; std::ssize(owners) < most; ++i) {
    const int owner = (owners.front() + i) % world.owners();
    if (std::ranges::find(owners, owner) == owners.end()) owners.push_back(owner);
  }
  return owners;
}

std::vector<int> samplers_that_ask(World world, Asked asked) {
  std::vector<int> samplers;
  for (World sampler = world; sampler.rank < world.size; ++sampler.rank) {
    if (sampler.owns_slots()) continue;
    const std::vector<int> owners = owners_to_ask(sampler, asked);
    if (std::ranges::find(owners, world.rank) != owners.end()) samplers.push_back(sampler.rank);
  }
  return samplers;
}

}  // namespace sluice::engine
