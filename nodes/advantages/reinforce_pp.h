#pragma once

#include "nodes/advantages/group_relative.h"
#include "nodes/statistics/whitening.h"

namespace sluice::nodes {

enum class ReinforceBaseline { kNone, kGroupMean };

constexpr auto enum_names(ReinforceBaseline) {
  return std::array{std::pair{ReinforceBaseline::kNone, "none"}, std::pair{ReinforceBaseline::kGroupMean, "group_mean"}};
}

/// The sum of the rewards from an action on, whitened over the iteration: REINFORCE++ (Hu et al. 2025).
///
///   return[t] = reward[t] + discount * return[t + 1]
///
///   [nodes.advantages]
///   type = "reinforce_pp"
///   inputs = ["rewards"]
///   discount = 1.0
///   baseline = "none"           # "group_mean": REINFORCE++-baseline, the mean score of the group is taken off each score
///   whiten = "iteration"        # or "none"; whiten_variance, whiten_epsilon, whiten_mean: see whitening.h
///
/// Reads token_rewards[A], or score[S] where no node before writes them, which then stands on the last action; with baseline =
/// "group_mean" score[S] in any case, and takes the group's mean of it off the last action. Reads mask[A] if there is one; writes
/// advantages[A] and returns[A], which are not whitened. The running return restarts at an action whose mask is 0: that action
/// still gets it, those before it do not. Its advantage is 0. A NaN goes to the earlier actions of its sample, and with whitening
/// to all of the iteration. With whiten = "iteration" the node is a barrier.
struct ReinforcePpParams : WhiteningParams {
  ReinforcePpParams() { whiten = Whitening::kIteration; }

  double discount = 1.0;
  ReinforceBaseline baseline = ReinforceBaseline::kNone;
};

class ReinforcePp final : public engine::Node {
 public:
  static void describe(engine::Contract<ReinforcePpParams>& contract);

  ReinforcePp(const ReinforcePpParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), totals_(*resources.totals) {}

  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;

 private:
  ReinforcePpParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
};

}  // namespace sluice::nodes
