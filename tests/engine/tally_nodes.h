#pragma once

#include "engine/contract/registry.h"

namespace sluice::engine::toy {

/// Nodes that show what ranks add up, beside register_toys(): all that they record follows from sums over single samples, so it
/// is the same however groups are packed and on whichever rank they are.
///
///   tally_record   records every kind of metric; a coefficient follows from a total at the end of the iteration before
///   tally_whiten   a barrier of several steps: in each the values move by moments over the iteration
///   tally_keep     keeps a number from iteration to iteration, by parameter another one on each rank
///   tally_train    updates a model by a total
void register_tallies(Registry& registry);

}  // namespace sluice::engine::toy
