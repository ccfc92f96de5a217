#include "nodes/statistics/kl_estimator.h"

#include <algorithm>
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

double KlParams::estimate(double logprob, double reference_logprob) const {
  double difference = logprob - reference_logprob;
  if (clamp_input) difference = std::clamp(difference, -*clamp_input, *clamp_input);
  const double kl = estimate_kl(kl_estimator, difference, 0);
  return clamp_output ? std::clamp(kl, -*clamp_output, *clamp_output) : kl;
}

}  // namespace sluice::nodes
