#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "engine/contract/contract.h"

namespace sluice::nodes {

/// Kahneman-Tversky optimisation (Ethayarajh et al. 2024, "KTO: Model Alignment as Prospect Theoretic Optimization"), in the form
/// of TRL's KTOTrainer: with d = log policy - log reference of a whole sample and the baseline z0, that of all samples of a step,
///
///   desirable:    desirable_weight   (1 - sigmoid(beta (d - z0)))
///   undesirable:  undesirable_weight (1 - sigmoid(beta (z0 - d)))
///
/// The baseline is max(0, mean d of mismatched samples), an estimate of the divergence of the policy from its reference that has
/// no gradient.
struct KtoLoss {
  engine::ScheduledNumber beta = 0.1;
  double desirable_weight = 1.0;    // lambda_D
  double undesirable_weight = 1.0;  // lambda_U
};

/// log_ratios [S] carries the gradient; desirable [S] bool; of an iteration: where beta stands. Returns [S].
at::Tensor kto_losses(const KtoLoss& loss, const at::Tensor& log_ratios, const at::Tensor& desirable, double baseline,
                      int64_t iteration);

/// Declares the parameters, which P derives from KtoLoss.
template <class P>
void describe_kto_loss(engine::Contract<P>& c) {
  c.param("beta", &P::beta)
      .above(0)
      .recorded_as("preference/beta")
      .doc("of the log ratio to the reference; the larger, the closer the policy stays to it");
  c.param("desirable_weight", &P::desirable_weight).at_least(0).doc("weight of the loss of desirable samples");
  c.param("undesirable_weight", &P::undesirable_weight).at_least(0).doc("weight of the loss of all other samples");
}

}  // namespace sluice::nodes
