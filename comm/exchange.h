#pragma once

#include <vector>

#include "comm/transfers.h"
#include "engine/contract/world/gradient_group.h"

namespace sluice::comm {

/// Gives other ranks what is in `out`, and gets what they give into `in`, as GradientGroup::exchange() has it. Straight out of
/// the memory and into it. Returns when this rank has all and nobody reads its own any more. Throws what Transfers throws.
void exchange(Transfers& transfers, const std::vector<engine::GradientGroup::Stretch>& out,
              const std::vector<engine::GradientGroup::Stretch>& in);

}  // namespace sluice::comm
