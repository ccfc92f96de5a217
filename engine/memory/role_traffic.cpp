#include "engine/memory/role_traffic.h"

#include "engine/memory/memory_bound.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {

RoleTraffic role_traffic(const Plan& plan) {
  RoleTraffic traffic;
  if (plan.roles.empty()) return traffic;
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
