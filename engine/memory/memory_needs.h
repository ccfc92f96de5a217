#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/memory/memory_bound.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What a rank needs of one memory, as a plan predicts it, and how much there is. A plain value.
struct MemoryNeed {
  PlanMemory memory;
  std::string role;           // of whose ranks; empty: there are no roles
  int rank = 0;               // the first of these
  int ranks = 1;              // and how many they are
  std::string place = kHost;  // or a device

  bool is_host() const { return place == kHost; }
  bool is_known() const { return memory.machine_bytes > 0; }  // how much there is
  bool fits() const { return !is_known() || memory.total_bytes() <= memory.machine_bytes; }

  /// Of what there is; 0: not known.
  double share() const;
};

/// All that is predicted: of each role, or of all ranks, the host and then its devices.
std::vector<MemoryNeed> memory_needs(const Plan& plan);

/// The one that takes the largest share of what there is; the largest where nothing is known.
MemoryNeed tightest_need(const Plan& plan);

/// [budget] tokens_in_flight, or that of the role.
int64_t tokens_of(const Plan& plan, const MemoryNeed& need);

/// The smallest of these with which no path stalls.
int64_t least_tokens_of(const Plan& plan, const MemoryNeed& need);

/// The largest that fits and cannot stall; 0: none, or what there is is not more than that already.
int64_t tokens_that_fit(const Plan& plan, const MemoryNeed& need);

/// Ranks that compute passes together.
struct PassRanks {
  int ranks = 1, ring = 1;
};

/// Those that could, more than do: they divide the ranks that train, and make the least ring whose blocks divide the heads of
/// keys of all models whose passes they are; none where some of these are on a device, which computes no ring. Ascending.
std::vector<PassRanks> more_pass_ranks(const Plan& plan);

/// What a rank that trains has less of activations at a place with these.
int64_t shared_pass_bytes(const Plan& plan, const PassRanks& shared, const std::string& place);

/// Whether most of it is trained: neither adapters alone, nor what a freeze leaves.
bool trains_most_of(const PlanModel& model);

/// What a rank has of gradients and optimizer of a model, which adapters would nearly do without.
int64_t training_bytes(const Plan& plan, const PlanModel& model);

/// The model that is trained from the very weights of a frozen one: `base_of` that one, once it has adapters, the frozen one
/// has no weights of its own. Null: none.
const PlanModel* base_in_place_of(const Plan& plan, const PlanModel& frozen);

}  // namespace sluice::engine
