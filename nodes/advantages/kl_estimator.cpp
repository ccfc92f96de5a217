#include "nodes/advantages/kl_estimator.h"

#include <cmath>

#include "base/error.h"

namespace sluice::nodes {

double estimate_kl(KlEstimator estimator, double logprob, double reference_logprob) {
  const double difference = logprob - reference_logprob;
  switch (estimator) {
    case KlEstimator::kK1:
      return difference;
    case KlEstimator::kK2:
      return difference * difference / 2;
    case KlEstimator::kK3:
      return std::expm1(-difference) + difference;  // expm1: near zero the terms cancel
    case KlEstimator::kAbs:
      return std::abs(difference);
  }
  throw InternalError("unknown KL estimator");
}

}  // namespace sluice::nodes
