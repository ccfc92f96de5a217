#include "engine/plan/cluster_work.h"

#include <algorithm>

#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

// What others own of a rank's part of the sums goes to them, and what it has stepped to each other group.
int64_t sent_in_common(const Plan& plan, int64_t bytes) {
  constexpr int64_t kFloatsOfASum = sizeof(int64_t) / sizeof(float);
  return (kFloatsOfASum + 1) * (plan.shard_groups() - 1) * (bytes / plan.training_ranks());
}

}  // namespace

bool sums_in_common(const Plan& plan, const ModelFacts& facts) { return plan.shards_parameters() && facts.passing_bytes > 0; }

// Every rank sends each number once to its owner, and its own numbers to all others.
int64_t sent_in_a_step(const Plan& plan, const ModelFacts& facts) {
  const int64_t bytes = facts.gradient_bytes;
  return sums_in_common(plan, facts) ? sent_in_common(plan, bytes) : 2 * (bytes - bytes / plan.training_ranks());
}

ClusterWork cluster_work(const Plan& plan) {
  const PlanPath& path = plan.main_path();
  ClusterWork work{.slots = plan.slots_of_rank()};
  work.groups = divided_up(plan.nodes[static_cast<size_t>(path.source)].needs.groups_per_iteration, plan.slots());
  const int64_t worst = std::max<int64_t>(1, path.capacity.group_tokens);
  work.micro_batches = divided_up(work.groups, std::max<int64_t>(1, path.micro_batch_tokens / worst));
  for (const PlanNode& node : plan.nodes) {
    for (const ModelNeed& need : node.needs.models) {
      const PlanModel* const model = plan.find_model(need.model);
      if (need.use != ModelUse::kUpdates || model == nullptr) continue;
      const int64_t steps = node.is_barrier() ? node.needs.steps : 1;
      work.gradient_bytes = saturating_sum(work.gradient_bytes, saturating_product(steps, sent_in_a_step(plan, model->facts)));
    }
  }
  return work;
}

}  // namespace sluice::engine
