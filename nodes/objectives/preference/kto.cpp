#include "nodes/objectives/preference/kto.h"

#include <ATen/ops/where.h>

namespace sluice::nodes {

at::Tensor kto_losses(const KtoLoss& loss, const at::Tensor& log_ratios, const at::Tensor& desirable, double baseline,
                      int64_t iteration) {
  const at::Tensor reward = log_ratios.sub(baseline).mul(loss.beta.at(iteration));  // [S] above the baseline
  const at::Tensor if_desirable = reward.neg().sigmoid().mul(loss.desirable_weight);
  return at::where(desirable, if_desirable, reward.sigmoid().mul(loss.undesirable_weight));
}

}  // namespace sluice::nodes
