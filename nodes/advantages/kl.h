#pragma once

#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/statistics/kl_estimator.h"

namespace sluice::nodes {

/// An estimate of KL(policy || reference) for each action, to look at or for an objective.
///
///   [nodes.kl]
///   type = "kl"
///   inputs = ["policy", "reference"]
///   estimator = "k3"             # "k1", "k2", "abs"; clamp_input, clamp_output: see kl_estimator.h
///   logprobs = "logprobs"        # the policy's side
///
/// Reads `logprobs`[A], reference_logprobs[A], and mask[A] if there is one; writes kl[A]. An action whose mask is 0 gets exactly
/// 0, whatever its log-probabilities are; the estimates of the others are multiplied by the mask. A NaN stays at its action.
struct KlNodeParams : KlParams {
  std::string logprobs = "logprobs";
};

class Kl final : public engine::Node {
 public:
  static void describe(engine::Contract<KlNodeParams>& contract);

  Kl(const KlNodeParams& params, engine::NodeResources& resources) : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  KlNodeParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
