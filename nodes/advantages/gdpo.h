#pragma once

#include <optional>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/weighted_scores.h"
#include "nodes/statistics/moments.h"

namespace sluice::nodes {

/// Group-relative advantage of several scores, each compared within its group before they are added (Liu et al. 2026, "GDPO:
/// Group reward-Decoupled Normalization Policy Optimization", arXiv 2601.05242, section 3):
///
///   A_k = (r_k - mean r_k) / (std r_k + epsilon)      over the samples of the group, for each score k
///   A   = sum_k weight_k A_k
///   advantage = A / (std A + epsilon)                 over all samples of the iteration
///
///   [nodes.advantages]
///   type = "gdpo"
///   inputs = ["correct", "format"]
///   scores = ["correct", "format"]     # the columns that the scorers write (their parameter writes)
///   weights = [1.0, 0.2]               # one for each; default: all 1
///   over_iteration = true              # false: the last step is left out, and nothing waits for the iteration's end
///   epsilon = 1e-6
///   std = "bessel"                     # over n - 1; "biased": over n
///
/// Where scores are added first (combine_scores, then grpo), samples with different scores may have the same sum, and the score
/// with the largest spread decides alone. Here each has its own spread.
///
/// The paper also subtracts the mean of A over the iteration. That of every group is 0, so nothing is left to subtract but
/// rounding; without it a group all of whose scores are equal gets exactly 0.
///
/// Reads `scores`[S] each, and mask[A] if there is one; writes advantages[A]  (S: samples, A: actions). A sample all of whose
/// actions are masked does not count and gets 0, one without actions counts; masked actions get 0. A sample alone in its group
/// gets 0. A score that counts and is not finite is a UserError that names column, group and sample. Micro-batches and ranks
/// change nothing.
struct GdpoParams : WeightedScoresParams {
  bool over_iteration = true;
  double epsilon = 1e-6;
  Variance std = Variance::kBessel;
};

class Gdpo final : public engine::Node {
 public:
  static void describe(engine::Contract<GdpoParams>& contract);

  Gdpo(const GdpoParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), totals_(*resources.totals) {}

  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;

 private:
  // Of each sample [S]: for each score what it adds to the sum [K]; nothing for a sample that does not count.
  std::vector<std::vector<double>> terms_of(const engine::MicroBatch& batch) const;
  void write(engine::MicroBatch& batch, double divisor);

  const GdpoParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
};

}  // namespace sluice::nodes
