#pragma once

#include <array>
#include <utility>

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// What a trust region is measured by, of p and q, the probabilities of the sampled token under the old weights and the trained
/// ones. All other tokens stand together as one (the paper's binary approximations).
enum class Divergence {
  kTv,  // total variation: |q - p|
  kKl,  // KL(old || trained): p log(p / q) + (1 - p) log((1 - p) / (1 - q))
};

constexpr auto enum_names(Divergence) { return std::array{std::pair{Divergence::kTv, "tv"}, std::pair{Divergence::kKl, "kl"}}; }

/// Divergence proximal policy optimisation (Qi et al. 2026, "Rethinking the Trust Region in LLM Reinforcement Learning", arXiv
/// 2602.04879): -r A with r = exp(logprob - old_logprob), and no loss for an action that went the way that its advantage leads
/// (up where A > 0, else down) until the two policies at this token are further apart than clip_high, or clip_low.
///
///   objective = { type = "dppo", divergence = "tv", clip_low = 0.15, clip_high = 0.15 }     # "kl": 0.05
///
/// A ratio says little of rare tokens, of which a huge one moves hardly anything, and of likely ones, where a small one moves
/// much; the divergence says it of both. And the parameters of every policy objective (policy_loss.h).
struct DppoParams : PolicyLossParams {
  Divergence divergence = Divergence::kTv;
  engine::ScheduledNumber clip_low = 0.15;
  engine::ScheduledNumber clip_high = 0.15;
};

class Dppo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<DppoParams>& contract);

  explicit Dppo(const DppoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  DppoParams params_;
};

}  // namespace sluice::nodes
