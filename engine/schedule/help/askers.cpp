#include "engine/schedule/help/askers.h"

#include <algorithm>

namespace sluice::engine {
namespace {

constexpr int kMostAsked = 8;  // in a round: of a thousand ranks nobody asks all

// Of ranks that only sample each has some of the owners that the next ones do not have; then come others.
std::vector<int> owners_of_sampler(World world, bool all) {
  const int samplers = world.size - world.owners(), own = world.rank - world.owners();
  std::vector<int> owners;
  for (int owner = own % world.owners(); owner < world.owners(); owner += samplers) owners.push_back(owner);
  const int others = world.owners() - static_cast<int>(owners.size()), asked = all ? others : std::min(others, kMostAsked);
  for (int i = 1; std::ssize(owners) < asked + (world.owners() - others); ++i) {
    const int owner = (owners.front() + i) % world.owners();
    if (std::ranges::find(owners, owner) == owners.end()) owners.push_back(owner);
  }
  return owners;
}

}  // namespace

std::vector<int> owners_to_ask(World world, bool all) {
  if (!world.owns_slots()) return owners_of_sampler(world, all);
  if (world.owners() < world.size) return {};
  std::vector<int> owners;
  const int others = world.size - 1, asked = std::min(others, kMostAsked);
  for (int i = 0; i < asked; ++i) owners.push_back((world.rank + 1 + i * others / asked) % world.size);
  return owners;
}

std::vector<int> samplers_that_ask(World world, bool all) {
  std::vector<int> samplers;
  for (World sampler = world; sampler.rank < world.size; ++sampler.rank) {
    if (sampler.owns_slots()) continue;
    const std::vector<int> asked = owners_to_ask(sampler, all);
    if (std::ranges::find(asked, world.rank) != asked.end()) samplers.push_back(sampler.rank);
  }
  return samplers;
}

}  // namespace sluice::engine
