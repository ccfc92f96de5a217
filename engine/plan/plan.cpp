#include "engine/plan/plan.h"

#include <algorithm>

#include "engine/plan/saturating.h"

namespace sluice::engine {

int64_t PlanMemory::total_bytes() const {
  int64_t total = 0;
  for (const int64_t bytes :
       {weights_bytes, gradient_bytes, optimizer_bytes, kv_bytes, column_bytes, activation_bytes, slack_bytes}) {
    total = saturating_sum(total, bytes);
  }
  return total;
}

bool computes_in_passes(const NodeType& type, const NodeNeeds& needs) {
  return type.kind == NodeKind::kOrdinary &&
         std::ranges::any_of(needs.models, [](const ModelNeed& need) { return need.use != ModelUse::kPublishes; });
}

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

std::vector<int> Plan::last_readers(const PlanColumn& column) const {
  std::vector<bool> leads_to_reader(nodes.size());  // a reader is behind it
  std::vector<int> last;
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool reads = std::find(column.readers.begin(), column.readers.end(), static_cast<int>(i)) != column.readers.end();
    if (reads && !leads_to_reader[i]) last.push_back(static_cast<int>(i));
    if (!reads && !leads_to_reader[i]) continue;
    for (const int input : nodes[i].inputs) leads_to_reader[static_cast<size_t>(input)] = true;
  }
  std::reverse(last.begin(), last.end());
  return last;
}

}  // namespace sluice::engine
