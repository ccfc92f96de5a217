// An objective as a plugin: instead of a hard clip, a quadratic pull of each log-ratio towards zero.
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "nodes/objectives/policy_loss.h"

namespace soft_clip {

using namespace sluice;

struct SoftClipParams : nodes::PolicyLossParams {
  double pull = 1.0;
};

/// -r A + pull / 2 (log r)^2 with r = exp(logprob - old_logprob): the second term is half the k2 estimate of the divergence from
/// the policy that sampled.
///
///   objective = { type = "soft_clip", pull = 1.0 }
///
/// Aggregation, mask, importance weights, KL and entropy terms are those of every policy objective.
class SoftClip final : public nodes::PolicyObjective {
 public:
  static void describe(engine::Contract<SoftClipParams>& c) {
    c.type("soft_clip", "policy gradient with a quadratic pull towards the policy that sampled");
    c.param("pull", &SoftClipParams::pull).at_least(0).doc("weight of the pull");
    nodes::describe_policy_loss(c);
  }

  explicit SoftClip(const SoftClipParams& params) : PolicyObjective(params), params_(params) {}

 private:
  nodes::Surrogate surrogate(const nodes::PolicyTerms& terms) const override {
    const at::Tensor log_ratio = terms.log_ratio();                          // [K], of the actions that count
    const at::Tensor gain = log_ratio.exp().mul(terms.advantages);           // [K]
    const at::Tensor pull = log_ratio.mul(log_ratio).mul(params_.pull / 2);  // [K]
    return {.losses = pull.sub(gain), .metrics = {}};
  }

  SoftClipParams params_;
};

void register_objectives(engine::Registry& registry) { registry.add_component<nodes::Objective, SoftClip>(); }

}  // namespace soft_clip

SLUICE_PLUGIN(soft_clip::register_objectives)
