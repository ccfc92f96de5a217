#include "nodes/train/ppo_pass.h"

#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/train/router_metrics.h"

namespace sluice::nodes {

at::Tensor PpoPass::column(const engine::ColumnSpec& spec) const {
  if (!batch.has(spec)) return {};
  return action_tensor(batch.read(spec).entries<const float>(), batch.layout(), chosen);
}

at::Tensor PpoPass::mask() const { return column(columns::kMask.spec()); }

std::vector<double> PpoPass::counted_by_actions() const {
  return counted_actions(batch.layout(), ActionMask(batch).weights(), chosen);
}

}  // namespace sluice::nodes
