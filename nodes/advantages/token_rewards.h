#pragma once

#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/advantages/kl_controller.h"
#include "nodes/columns/action_mask.h"
#include "nodes/statistics/kl_estimator.h"

namespace sluice::nodes {

/// The mean KL of an iteration, which an adaptive controller compares with its target.
enum class KlMeasure {
  kSequence,  // mean over the samples of the sum over their actions (Ziegler et al. 2019, TRL)
  kToken,     // mean over the samples of the mean over their actions (verl, OpenRLHF, SkyRL)
};

constexpr auto enum_names(KlMeasure) {
  return std::array{std::pair{KlMeasure::kSequence, "sequence"}, std::pair{KlMeasure::kToken, "token"}};
}

/// Rewards of single actions: the sample's score on its last action, minus a KL penalty on every action (Ouyang et al. 2022, eq.
/// 2).
///
///   [nodes.rewards]
///   type = "token_rewards"
///   inputs = ["score", "reference"]
///   kl_coefficient = 0.02          # 0: the score alone; no reference is read; or a schedule
///   kl_estimator = "k1"            # "k2", "k3", "abs"; clamp_input, clamp_output: see kl_estimator.h
///   kl_controller = "fixed_kl"     # or { type = "adaptive_kl", initial = 0.2, target = 6.0, horizon = 10000.0 }, see
///   adaptive_kl.h kl_measure = "sequence"        # what the controller steers; "token" score_clip = [-5.0, 5.0]       # bounds
///   of the score; unset: none logprobs = "rollout_logprobs"  # the policy's side of the KL
///
/// Reads score[S] and, with a penalty, `logprobs`[A] and reference_logprobs[A]; mask[A] and step_rewards[A] if there are any (not
/// NaN where a step ends: added there, not clipped). Writes token_rewards[A]  (S: samples, A: actions). An action whose mask is 0
/// gets 0, and the score stands on the last action that the mask keeps; whatever else the mask is, the loss weighs by it. A
/// sample without such an action has no place for its score and gets nothing.
///
/// An adaptive controller changes the coefficient after each iteration, by the KL of all its samples that have an action that
/// counts; the iteration itself is penalised with the one it began with.
struct TokenRewardsParams : KlParams {
  engine::ScheduledNumber kl_coefficient = 0;
  engine::Component<KlController> kl_controller{.type = "fixed_kl"};
  KlMeasure kl_measure = KlMeasure::kSequence;
  std::vector<double> score_clip;
  std::string logprobs = "rollout_logprobs";

  bool adaptive() const { return kl_controller.object != nullptr && kl_controller.object->initial().has_value(); }
  bool penalised() const { return adaptive() || !kl_coefficient.is(0); }
};

class TokenRewards final : public engine::Node {
 public:
  static void describe(engine::Contract<TokenRewardsParams>& contract);

  TokenRewards(const TokenRewardsParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration& iteration) override;
  void save(engine::StateWriter& state) const override;
  void load(const engine::StateReader& state) override;

 private:
  void subtract_penalty(engine::MicroBatch& batch, const ActionMask& mask, std::span<float> rewards);
  double coefficient(int64_t iteration) const;
  void add_scores(engine::MicroBatch& batch, const ActionMask& mask, std::span<float> rewards) const;

  TokenRewardsParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  double adapted_;  // the coefficient, where a controller changes it
};

}  // namespace sluice::nodes
