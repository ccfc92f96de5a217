#pragma once

#include <optional>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// log teacher - log policy of each action that the policy sampled: minus the estimate of KL(policy || teacher), so that more of
/// it is closer to the teacher. On-policy distillation (Agarwal et al. 2024, "GKD"; Lu et al. 2025, "On-Policy Distillation").
///
///   advantage[t] = d[t] + discount * advantage[t + 1],   d = clamp(log teacher - log policy, -clip, clip)
///
///   [nodes.advantages]
///   type = "distill"
///   inputs = ["teacher"]
///   teacher_logprobs = "teacher_logprobs"   # the column of the node that asks the teacher
///   logprobs = "rollout_logprobs"           # of the policy
///   clip = 5.0                              # unset: none
///   discount = 0.0                          # each action by itself; 1: with all that comes after it
///
/// Reads the two columns [A], and mask[A] if there is one; writes advantages[A]. Actions whose mask is 0 are passed over and get
/// 0. A NaN goes to its action, and with a discount to the earlier ones of its sample.
struct DistillParams {
  std::string teacher_logprobs = "teacher_logprobs";
  std::string logprobs = "rollout_logprobs";
  std::optional<double> clip;
  double discount = 0;
};

class Distill final : public engine::Node {
 public:
  static void describe(engine::Contract<DistillParams>& contract);

  Distill(const DistillParams& params, engine::NodeResources& resources) : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  DistillParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
