#include "engine/plan.h"

#include <algorithm>

namespace sluice::engine {

int Plan::index_of(const std::string& node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const PlanNode& n) { return n.name == node; });
  return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
}

bool Plan::rollout_waits_for_versions() const {
  if (!rollout) return false;
  const auto& needs = nodes[static_cast<size_t>(*rollout)].needs.models;
  return std::any_of(needs.begin(), needs.end(), [this](const ModelNeed& need) {
    return need.use == ModelUse::kSamples && std::any_of(models.begin(), models.end(), [&](const PlanModel& model) {
             return model.name == need.model && model.usage.updated;
           });
  });
}

}  // namespace sluice::engine
