#include "nodes/train/train_kto.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/passes.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/last_filled.h"
#include "nodes/train/weighed_actions.h"

namespace sluice::nodes {
namespace {

// Log ratios of mismatched samples, the rows that these are of, and the samples that are learned from.
constexpr const char *kMismatchedTotal = "mismatched", *kRowTotal = "rows", *kLearnedTotal = "learned";

// The first sample of each group; or all others.
std::vector<size_t> firsts(const engine::Layout& layout) {
  std::vector<size_t> samples;
  for (const engine::Range group : layout.samples_by_group()) {
    if (group.size() > 0) samples.push_back(group.begin);
  }
  return samples;
}

std::vector<size_t> mismatched(const engine::MicroBatch& batch) {
  std::vector<size_t> samples;
  size_t index = 0;
  for (const engine::Range group : batch.layout().samples_by_group()) {
    if (group.size() == 1)
      throw UserError("group " + std::to_string(batch.group_index(index)) + " has one sample, and none with another completion",
                      "train_kto takes groups as a node of type \"unpaired_preferences\" makes them");
    for (size_t sample = group.begin + 1; sample < group.end; ++sample) samples.push_back(sample);
    ++index;
  }
  return samples;
}

}  // namespace

void TrainKto::describe(engine::Contract<TrainKtoParams>& c) {
  using P = TrainKtoParams;
  c.type("train_kto", "one optimizer step an iteration on samples that are desirable or not");
  c.model("model", &P::model, engine::ModelUse::kUpdates, "language_model").required().doc("the policy");
  describe_kto_loss(c);
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that computes the reference");
  c.reads(columns::kTokens, columns::kScore, columns::kReferenceLogprobs);
  c.reads_if_written(columns::kMask);
  c.needs([](const P& params, engine::NodeNeeds& needs) { needs.must_agree["temperature"] = params.temperature; });
  c.iteration_scope_if([](const P&) { return true; }, "the baseline of all losses");
  c.steps([](const P&) { return 2; });
  c.total(kMismatchedTotal);
  c.total(kRowTotal);
  c.total(kLearnedTotal);
  c.check([](const P& params, engine::Findings& findings) {
    if (params.desirable_weight == 0 && params.undesirable_weight == 0)
      findings.error("desirable_weight", "desirable_weight and undesirable_weight are both 0: nothing is learned",
                     "1.0 for both, or more for what there is less of");
  });
  c.metric("policy/loss", engine::Metric::kMean, "mean loss of a sample");
  describe_gradient_norm(c, "policy");
  c.metric("preference/baseline", engine::Metric::kValue, "mean log ratio of the mismatched samples, at least 0");
  c.metric("preference/accuracy", engine::Metric::kMean, "share of the samples whose log ratio is on their side of the baseline");
  c.metric("preference/desirable_reward_mean", engine::Metric::kMean, "beta times the log ratio of a desirable sample");
  c.metric("preference/undesirable_reward_mean", engine::Metric::kMean, "the same of the others");
  IterationStep::describe(c, "policy");
}

TrainKto::TrainKto(const TrainKtoParams& params, engine::NodeResources& resources)
    : params_(params),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      step_(params.model, "policy", kLearnedTotal, resources) {}

void TrainKto::gather(int64_t step, std::span<engine::MicroBatch> batches) {
  if (step == 0) {
    for (const engine::MicroBatch& batch : batches) add_to_baseline(batch);
    return;
  }
  std::vector<Passes> all;
  for (const engine::MicroBatch& batch : batches) all.push_back(passes(batch, firsts(batch.layout())));
  const std::optional<size_t> last = last_filled(all);
  for (size_t i = 0; i < batches.size(); ++i) accumulate(batches[i], all[i], /*is_last=*/i == last);
}

void TrainKto::process_iteration(int64_t step, std::span<engine::MicroBatch>) {
  if (step == 0) {
    const bool is_row_alone = totals_.sum_of_all(kRowTotal) < 2;  // its mismatched completion is its own
    baseline_ = is_row_alone ? 0 : std::max(0.0, totals_.of_all(kMismatchedTotal).mean());
    return;
  }
  if (step_.make()) metrics_.value("preference/baseline", baseline_);
}

TrainKto::Passes TrainKto::passes(const engine::MicroBatch& batch, std::span<const size_t> samples) const {
  return passes_of(batch.layout(), samples_that_count(batch.layout(), ActionMask(batch).weights(), samples), step_.pass_tokens());
}

void TrainKto::add_to_baseline(const engine::MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  totals_.add(kRowTotal, static_cast<double>(firsts(batch.layout()).size()));
  for (const std::vector<size_t>& pass : passes(batch, mismatched(batch))) {
    const at::Tensor ratios = log_ratios(batch, pass);
    for (int64_t i = 0; i < ratios.numel(); ++i) totals_.add(kMismatchedTotal, ratios.const_data_ptr<double>()[i]);
  }
}

void TrainKto::accumulate(const engine::MicroBatch& batch, const Passes& passes, bool is_last) {
  const auto scores = finite_scores(batch, columns::kScore.name);  // [S]
  step_.enter(batch);
  for (const std::vector<size_t>& pass : passes) {
    step_.begin_pass(std::vector<double>(pass.size(), 1.0), is_last && &pass == &passes.back());
    std::vector<double> of_pass;
    for (const size_t sample : pass) of_pass.push_back(scores[sample]);
    const at::Tensor desirable = at::tensor(of_pass, at::kDouble).gt(0);  // [S']
    const at::Tensor ratios = log_ratios(batch, pass);                    // [S']
    const double loss_sum =
        accumulate_gradient(kto_losses(params_, ratios, desirable, baseline_, batch.iteration()).sum(), "loss");
    step_.record(loss_sum, static_cast<double>(pass.size()));
    record(ratios.detach(), desirable, params_.beta.at(batch.iteration()));
  }
}

at::Tensor TrainKto::log_ratios(const engine::MicroBatch& batch, std::span<const size_t> samples) {
  const engine::Layout& layout = batch.layout();
  const at::Tensor logprobs = policy_logprobs(step_.forward(), some_samples({batch.read(columns::kTokens)}, layout, samples),
                                              params_.temperature.at(batch.iteration()));
  const at::Tensor reference = action_tensor(batch.read(columns::kReferenceLogprobs), layout, samples);
  const WeighedActions actions(layout, samples, ActionMask(batch).weights());
  return actions.sums(logprobs).sub(actions.sums(reference));
}

void TrainKto::record(const at::Tensor& log_ratios, const at::Tensor& desirable, double beta) {
  const auto count = static_cast<double>(log_ratios.numel());
  const auto mean = [](const at::Tensor& x) { return x.to(at::kDouble).mean().item().toDouble(); };
  metrics_.mean("preference/accuracy", mean(log_ratios.gt(baseline_).eq(desirable)), count);
  const auto rewards_of = [&](const char* name, const at::Tensor& which) {
    const at::Tensor rewards = log_ratios.masked_select(which).mul(beta);
    if (rewards.numel() > 0) metrics_.mean(name, mean(rewards), static_cast<double>(rewards.numel()));
  };
  rewards_of("preference/desirable_reward_mean", desirable);
  rewards_of("preference/undesirable_reward_mean", desirable.logical_not());
}

}  // namespace sluice::nodes
