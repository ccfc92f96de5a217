#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::nodes {

/// How the groups of an iteration are dealt out to the mini-batches of one epoch. The same values deal alike.
struct Deal {
  int64_t parts = 1;
  uint64_t seed = 0;
  int64_t iteration = 0;
  int64_t epoch = 0;
};

/// What is known of a micro-batch: the slot that its groups are of, and how many they are.
struct DealtBatch {
  int slot = 0;
  size_t groups = 0;
};

/// For each micro-batch the groups that were chosen, ascending, counted from its first one.
using ChosenGroups = std::vector<std::vector<size_t>>;

/// The groups 0..groups-1 of one slot, dealt out: `deal.parts` disjoint sets that together are all of them, each ascending, their
/// sizes at most one apart (some are empty when there are fewer groups than parts). Which sets are the larger ones differs from
/// slot to slot. However the groups were packed into micro-batches, and whoever has the other slots.
std::vector<std::vector<size_t>> deal_groups(size_t groups, const Deal& deal, int slot);

/// Those of part `part`, of micro-batches that are in order within each slot.
ChosenGroups groups_of_part(std::span<const DealtBatch> batches, const Deal& deal, int64_t part);

}  // namespace sluice::nodes
