#pragma once

#include <vector>

#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/world.h"
#include "engine/plan/rank_layout.h"

namespace sluice::engine {

/// The ranks that work together with this one: the one that leads, and those that assist it, which are next to each other. A rank
/// that trains leads passes, and where there are no roles the sampling; with roles a rank that samples leads the sampling of
/// others.
std::vector<int> group_of(const RankLayout& layout, int rank);

/// Its place among them: 0 leads.
int place_in_group(const RankLayout& layout, int rank);

/// All ranks that hold what is trained, as this one of them sees it: those of a group after each other, each with a slot for
/// every slot of the one that leads. So gradients are added inside a group first, and where nobody assists it is the world of
/// those that have slots.
World trainers_of(const RankLayout& layout, int rank);

/// With shard = "parameters": the ranks that have memory in common with this one of them, which are next to each other in the
/// run, but for those between that sample alone.
SharingRanks sharing_with(const RankLayout& layout, int rank);

/// With whom a rank computes passes of the frozen models of a role (RankLayout::forward_roles): of one that trains those that it
/// asks, and of one of the role those that it answers. They are dealt out in blocks: where the role has more ranks, each that
/// trains asks several, else each of the role answers several.
std::vector<int> forward_peers(const RankLayout& layout, int rank, const PlanRole& role);

/// Of a rank that samples what others train: those that have memory in common with it for the versions that they sample from,
/// which are those of its host; it alone where each has a part of a version, or may be lost. `hosts`: by rank, equal numbers
/// share memory.
SharingRanks sampling_beside(const RankLayout& layout, int rank, const std::vector<int>& hosts);

}  // namespace sluice::engine
