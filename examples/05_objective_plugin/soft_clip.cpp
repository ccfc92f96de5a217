// An objective as a plugin: instead of a hard clip, a quadratic pull of each log-ratio towards zero.
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include "engine/plugin.h"
#include "engine/registry.h"
#include "nodes/objectives/objective.h"

namespace soft_clip {

using namespace sluice;

struct SoftClipParams {
  double pull = 1.0;
};

/// -r A + pull / 2 (log r)^2 with r = exp(logprob - old_logprob): the second term is half the k2 estimate of the divergence from the
/// policy that sampled.
///
///   objective = { type = "soft_clip", pull = 1.0 }
class SoftClip final : public nodes::Objective {
 public:
  static void describe(engine::Contract<SoftClipParams>& c) {
    c.type("soft_clip", "policy gradient with a quadratic pull towards the policy that sampled");
    c.param("pull", &SoftClipParams::pull).at_least(0).doc("weight of the pull");
  }

  explicit SoftClip(const SoftClipParams& params) : params_(params) {}

  bool reads_old_logprobs() const override { return true; }

  nodes::ObjectiveResult compute(const nodes::ObjectiveInputs& inputs) const override {
    const at::Tensor log_ratio = inputs.logprobs.sub(inputs.old_logprobs);                                       // [A]
    const at::Tensor gain = log_ratio.exp().mul(inputs.advantages);                                              // [A]
    const at::Tensor losses = log_ratio.mul(log_ratio).mul(params_.pull / 2).sub(gain);                          // [A]
    return {.loss_sum = losses.sum(), .count = static_cast<double>(losses.numel()), .metrics = {}};
  }

 private:
  SoftClipParams params_;
};

void register_objectives(engine::Registry& registry) { registry.add_component<nodes::Objective, SoftClip>(); }

}  // namespace soft_clip

SLUICE_PLUGIN(soft_clip::register_objectives)
