#pragma once

#include <vector>

#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// How many of the ranks with slots a rank that only samples asks. All of them where such ranks may be lost: the others can go on
/// without it then, whoever it is.
enum class Asked { kSome, kAll };
Asked asked_by_samplers(const Plan& plan);

/// Which others a rank with slots asks for groups to make, in this order: up to eight, spread over all of them, and other ones
/// than its neighbours ask. None where there are ranks that only sample.
std::vector<int> ranks_to_ask(World world);

/// Which ranks with slots one without asks: those first that it alone must not forget, which no other rank may ask, then up to
/// eight others, or all.
std::vector<int> owners_to_ask(World world, Asked asked);

/// The ranks without slots that ask this one, ascending.
std::vector<int> samplers_that_ask(World world, Asked asked);

}  // namespace sluice::engine
