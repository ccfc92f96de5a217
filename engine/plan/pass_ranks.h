#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// The ranks that compute passes together with this one, which trains or assists: the one that leads, and those that assist it. Of
/// each group of ranks they are next to each other, but for the one that leads.
std::vector<int> pass_ranks_of(const Plan& plan, int rank);

/// Its place among them: 0 leads.
int pass_place_of(const Plan& plan, int rank);

/// All ranks that hold what is trained, as this one of them sees it: those of a group behind each other, each with a slot for
/// every slot of the one that leads. So gradients are added inside a group first, and where nobody assists it is the world of
/// those that have slots.
World trainers_of(const Plan& plan, int rank);

}  // namespace sluice::engine
