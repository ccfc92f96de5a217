#include "nodes/objectives/kl_estimate.h"

#include "base/error.h"
#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

at::Tensor kl_estimates(KlEstimator estimator, const at::Tensor& log_ratio) {
  switch (estimator) {
    case KlEstimator::kK1:
      return log_ratio;
    case KlEstimator::kK2:
      return log_ratio.square().div(2);
    case KlEstimator::kK3: {
      const at::Tensor held = held_log_ratio(log_ratio);  // both terms, or the gradient would change its sign beyond
      return held.neg().exp().sub(1).add(held);
    }
    case KlEstimator::kAbs:
      return log_ratio.abs();
  }
  throw InternalError("unknown KL estimator");
}

}  // namespace sluice::nodes
