#include "engine/memory/role_traffic.h"

#include "engine/memory/memory_bound.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {

namespace {

// Of each token at worst its id, where it stands, and the token after it; and a number for an answer.
constexpr int64_t kAskedBytes = 3 * sizeof(int64_t), kAnswerBytes = sizeof(float);

// Of an iteration, on a rank that asks. A node may make samples longer than they came.
int64_t asked_tokens(const Plan& plan, int node) {
  const PlanPath& path = plan.path_of(node);
  const int64_t made = plan.maker_of(path).needs.worst_sample_tokens;
  const int64_t longest = plan.nodes[static_cast<size_t>(node)].needs.worst_sample_tokens;
  const int64_t tokens = path.capacity.iteration_tokens;
  return made > 0 && longest > made ? saturating_product(tokens / made + 1, longest) : tokens;
}

void add_passes(const Plan& plan, RoleTraffic& traffic) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.forward_role_of(plan.nodes[i]) == nullptr) continue;
    const int64_t tokens = saturating_product(asked_tokens(plan, static_cast<int>(i)), plan.owners());
    const int64_t of_token = kAskedBytes + route_bytes_of(plan, plan.nodes[i].needs);
    traffic.passes.push_back({.node = static_cast<int>(i),
                              .asked_bytes = saturating_product(tokens, of_token),
                              .answer_bytes = saturating_product(tokens, kAnswerBytes)});
  }
}

}  // namespace

RoleTraffic role_traffic(const Plan& plan) {
  RoleTraffic traffic;
  add_passes(plan, traffic);
  if (!plan.has_roles()) return traffic;
  for (const PlanModel& model : plan.models) {
    const auto usage = plan.usage_on(0, model);
    if (usage && usage->sent) traffic.versions.push_back({model.name, model.facts.wire_bytes});
  }
  for (size_t p = 0; p < plan.paths.size(); ++p) {
    const PlanPath& path = plan.paths[p];
    if (!path.rollout) continue;
    const int64_t groups = saturating_product(path.capacity.drawn_groups, plan.owners());
    const GroupBytes bytes = worst_group_bytes(plan, path);
    traffic.groups.push_back({static_cast<int>(p), groups, saturating_product(groups, bytes.prompt),
                              saturating_product(groups, saturating_sum(bytes.prompt, bytes.made))});
  }
  return traffic;
}

}  // namespace sluice::engine
