#pragma once

#include <cstdint>
#include <vector>

#include "comm/transfers.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// Gives all ranks what each has of `values`: rank r from begins[r] up to begins[r + 1]. Straight out of the buffer and into it;
/// a rank sends as much as in a ring. Returns when this rank has all and nobody reads its own any more. Throws what Transfers
/// throws.
void all_gather(engine::World world, Transfers& transfers, float* values, const std::vector<int64_t>& begins);

}  // namespace sluice::comm
