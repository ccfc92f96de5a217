#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// What several teachers are together (Hinton et al. 2015, "Distilling the Knowledge in a Neural Network", section 1).
enum class TeacherMean {
  kArithmetic,  // log of sum_k weight_k p_k: their mixture, near which the policy may follow either
  kGeometric,  // sum_k weight_k log p_k: the policy lowers the mean of KL(policy || teacher_k), and keeps to what all find likely
};

constexpr auto enum_names(TeacherMean) {
  return std::array{std::pair{TeacherMean::kArithmetic, "arithmetic"}, std::pair{TeacherMean::kGeometric, "geometric"}};
}

/// log teacher - log policy of each action that the policy sampled: minus the estimate of KL(policy || teacher), so that more of
/// it is closer to the teacher. On-policy distillation (Agarwal et al. 2024, "GKD"; Lu et al. 2025, "On-Policy Distillation").
///
///   advantage[t] = d[t] + discount * advantage[t + 1],   d = clamp(log teacher - log policy, -clip, clip)
///
///   [nodes.advantages]
///   type = "distill"
///   inputs = ["teacher"]
///   teacher_logprobs = ["teacher_logprobs"]  # the column of the node that asks the teacher, or those of several
///   weights = [0.7, 0.3]                    # of several, of which their sum is 1 together; default: all alike
///   mean = "arithmetic"                     # what they are together; or "geometric"
///   logprobs = "rollout_logprobs"           # of the policy
///   clip = 5.0                              # unset: none
///   discount = 0.0                          # each action by itself; 1: with all that comes after it
///
/// Reads these columns [A], and mask[A] if there is one; writes advantages[A]. Actions whose mask is 0 are passed over and get
/// 0. A NaN goes to its action, and with a discount to the earlier ones of its sample.
struct DistillParams {
  std::vector<std::string> teacher_logprobs{"teacher_logprobs"};
  std::vector<double> weights;
  TeacherMean mean = TeacherMean::kArithmetic;
  std::string logprobs = "rollout_logprobs";
  std::optional<double> clip;
  double discount = 0;
};

class Distill final : public engine::Node {
 public:
  static void describe(engine::Contract<DistillParams>& contract);

  Distill(const DistillParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  // log of the teachers' probability of each action [A].
  std::vector<double> teachers(const engine::MicroBatch& batch) const;

  const DistillParams params_;
  std::vector<double> weights_;  // of each teacher; their sum is 1
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
