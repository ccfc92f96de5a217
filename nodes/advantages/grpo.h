#pragma once

#include <optional>

#include "nodes/advantages/group_relative.h"
#include "nodes/statistics/moments.h"

namespace sluice::nodes {

enum class EpsilonPlacement {
  kOutside,  // / (std + epsilon)
  kInside,   // / sqrt(variance + epsilon)
};

constexpr auto enum_names(EpsilonPlacement) {
  return std::array{std::pair{EpsilonPlacement::kOutside, "outside"}, std::pair{EpsilonPlacement::kInside, "inside"}};
}

enum class GrpoBaseline {
  kGroupMean,    // mean and std of the group
  kLeaveOneOut,  // mean and std of the other samples of the group (NeMo-RL); a std of 0 divides nothing
};

constexpr auto enum_names(GrpoBaseline) {
  return std::array{std::pair{GrpoBaseline::kGroupMean, "group_mean"}, std::pair{GrpoBaseline::kLeaveOneOut, "leave_one_out"}};
}

/// Whose standard deviation the advantages are divided by.
enum class StdOver { kGroup, kIteration };

constexpr auto enum_names(StdOver) {
  return std::array{std::pair{StdOver::kGroup, "group"}, std::pair{StdOver::kIteration, "iteration"}};
}

enum class Supervision {
  kOutcome,  // a reward a sample
  kProcess,  // a reward a step
};

constexpr auto enum_names(Supervision) {
  return std::array{std::pair{Supervision::kOutcome, "outcome"}, std::pair{Supervision::kProcess, "process"}};
}

/// Group-relative advantage: (reward - mean) / (std + epsilon) over the samples of a prompt (Shao et al. 2024, "DeepSeekMath",
/// section 4.1.2).
///
///   [nodes.advantages]
///   type = "grpo"
///   inputs = ["score"]
///   normalize_std = true            # false: the mean alone is subtracted (Liu et al. 2025, "Dr. GRPO")
///   epsilon = 1e-6
///   epsilon_placement = "outside"   # "inside": / sqrt(variance + epsilon)
///   std = "bessel"                  # over n - 1; "biased": over n
///   std_over = "group"              # "iteration": of the rewards of all samples of the iteration; a barrier
///   baseline = "group_mean"         # "leave_one_out": mean and std of the other samples
///   lone_sample = "zero"            # "score": a sample without company keeps its reward
///   supervision = "outcome"         # "process": rewards of steps
///
/// Reads score[S], or token_rewards[A] where some node before writes them, and mask[A] if there is one; writes advantages[A].
/// What counts and what a mask does: see group_relative.h. A group of equal scores gets exactly 0.
///
/// With supervision = "process" it reads step_rewards[A] instead (NaN where no step ends). All step rewards of a group are
/// normalised by their mean and std, and the advantage of an action is the sum of those of its sample that come with it or later
/// (section 4.1.3). lone_sample is then about a group with a single step.
struct GrpoParams {
  bool normalize_std = true;
  double epsilon = 1e-6;
  EpsilonPlacement epsilon_placement = EpsilonPlacement::kOutside;
  Variance std = Variance::kBessel;
  StdOver std_over = StdOver::kGroup;
  GrpoBaseline baseline = GrpoBaseline::kGroupMean;
  LoneSample lone_sample = LoneSample::kZero;
  Supervision supervision = Supervision::kOutcome;
};

class Grpo final : public GroupRelative {
 public:
  static void describe(engine::Contract<GrpoParams>& contract);

  Grpo(const GrpoParams& params, engine::NodeResources& resources)
      : GroupRelative(resources), params_(params), totals_(*resources.totals) {}

  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;

 protected:
  std::vector<double> advantages_of(const RewardedGroup& group) const override;

 private:
  double scaled(double centred, double variance) const;
  std::vector<double> normalised(std::span<const double> rewards) const;
  std::vector<double> normalised_by_others(std::span<const double> rewards) const;
  void process_steps(engine::MicroBatch& batch);

  GrpoParams params_;
  engine::Totals& totals_;
  std::optional<double> iteration_variance_;  // std_over = "iteration"
};

}  // namespace sluice::nodes
