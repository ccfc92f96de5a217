#include "nodes/advantages/kl.h"

#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

void Kl::describe(engine::Contract<KlNodeParams>& c) {
  using P = KlNodeParams;
  c.type("kl", "estimate of the divergence of the policy from the reference, for each action");
  describe_kl(c, "estimator");
  c.param("logprobs", &P::logprobs).doc("action column with the policy's log-probabilities");
  c.reads_named(&P::logprobs, engine::DType::kFloat32, engine::Extent::kAction);
  c.reads(columns::kReferenceLogprobs);
  c.reads_if_written(columns::kMask);
  c.writes(columns::kKl);
  c.metric("reference/kl_estimate_mean", engine::Metric::kMean, "mean over the actions of the estimate");
  c.metric("reference/kl_estimate_max", engine::Metric::kMaximum, "largest estimate of an action");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.logprobs != columns::kReferenceLogprobs.name) return;
    findings.error("logprobs", "the KL of reference_logprobs against itself is always 0",
                   "name the policy's column, such as rollout_logprobs");
  });
}

void Kl::process(engine::MicroBatch& batch) {
  const auto policy = batch.read(engine::Column<float>{params_.logprobs.c_str(), engine::Extent::kAction});  // [A]
  const auto reference = batch.read(columns::kReferenceLogprobs);                                            // [A]
  auto kl = batch.write(columns::kKl);                                                                       // [A], zero
  const ActionMask mask(batch);
  double sum = 0;
  for (size_t a = 0; a < kl.size(); ++a) {
    if (!mask.keeps(a)) continue;
    const double estimate = params_.estimate(policy[a], reference[a]);
    kl[a] = static_cast<float>(estimate * mask.weight(a));
    sum += estimate * mask.weight(a);
    metrics_.maximum("reference/kl_estimate_max", estimate);
  }
  const double count = mask.total(kl.size());
  metrics_.mean("reference/kl_estimate_mean", sum / count, count);
}

}  // namespace sluice::nodes
