#pragma once

#include <vector>

#include "engine/contract/world/world.h"

namespace sluice::engine {

/// Which ranks a rank asks for groups to make, in this order: up to eight others, spread over all of them, and other ones than
/// its neighbours ask. A rank without slots asks those that it alone must not forget, each of which no other rank may ask, before
/// these. `all`: every rank that only samples asks every rank with slots, so that the others can go on without it.
std::vector<int> owners_to_ask(World world, bool all = false);

/// The ranks without slots that ask this one, ascending.
std::vector<int> samplers_that_ask(World world, bool all = false);

}  // namespace sluice::engine
