#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Variational sequence-level soft policy optimisation (Shen et al. 2026, arXiv 2602.10693): a policy gradient weighed, sample by
/// sample, by a smooth kernel of the ratio w of the whole sample (the product over its actions), which is 1 at w = 1:
///
///   -phi(w) A logprob     phi(w) = w^k exp(lambda (1 - w)), a constant
///
///   objective = { type = "vespo", k_positive = 2.0, lambda_positive = 3.0, k_negative = 3.0, lambda_negative = 2.0 }
///
/// k and lambda are the positive ones for actions of an advantage from 0, else the negative ones. A sample that became unlikely
/// fades as w^k, one that became likely as exp(-lambda w). And the parameters of every policy objective (policy_loss.h).
struct VespoParams : PolicyLossParams {
  double k_positive = 2;
  double lambda_positive = 3;
  double k_negative = 3;
  double lambda_negative = 2;
};

class Vespo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<VespoParams>& contract);

  explicit Vespo(const VespoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  VespoParams params_;
};

}  // namespace sluice::nodes
