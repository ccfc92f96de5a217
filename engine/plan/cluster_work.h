#pragma once

#include <cstdint>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// What an iteration is for one rank of those that a plan is for, at worst.
struct ClusterWork {
  int64_t slots = 1;           // of the rank
  int64_t groups = 0;          // of a slot, on the main path, as it draws at first
  int64_t micro_batches = 0;   // of a slot
  int64_t gradient_bytes = 0;  // that the rank sends to others, all optimizer steps together: as a ring would
};

ClusterWork cluster_work(const Plan& plan);

/// Whether the ranks that train a model add its gradients up in memory that they have in common. Of adapters, which are few, each
/// rank has all.
bool sums_in_common(const Plan& plan, const ModelFacts& facts);

/// What a rank sends to others in each step of the optimizer of a model: gradients, and the weights that it has stepped.
int64_t sent_in_a_step(const Plan& plan, const ModelFacts& facts);

}  // namespace sluice::engine
