#include "nodes/train/train_dpo.h"

#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/objectives/checked_losses.h"
#include "nodes/train/gradient_in_parts.h"
#include "nodes/train/pair_metrics.h"

namespace sluice::nodes {
namespace {

bool reads_reference(const TrainDpoParams& params) { return params.objective.object->reads_reference(); }

}  // namespace

void TrainDpo::describe(engine::Contract<TrainDpoParams>& c) {
  using P = TrainDpoParams;
  c.type("train_dpo", "one optimizer step an iteration on pairs of a better and a worse sample");
  c.model("model", &P::model, engine::ModelUse::kUpdates, "language_model").required().doc("the policy");
  c.param("objective", &P::objective).doc("loss of a pair");
  c.param("nll_coefficient", &P::nll_coefficient)
      .at_least(0)
      .doc("weight of minus the mean log-probability of an action of the chosen sample, which is added to the loss");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.reads(columns::kTokens, columns::kScore);
  c.reads_if(reads_reference, columns::kReferenceLogprobs);
  c.reads_if_written(columns::kMask);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.must_agree["temperature"] = params.temperature;
    needs.least_samples = 2;
  });
  describe_pair_metrics(c, "policy", "share of the pairs whose chosen sample has the higher reward, as the objective takes it");
  c.metric("preference/chosen_logprob_mean", engine::Metric::kMean,
           "mean log-probability of a chosen sample, all of its actions together");
  c.metric("preference/rejected_logprob_mean", engine::Metric::kMean, "the same of the rejected samples");
  IterationStep::describe(c, "policy");
}

TrainDpo::TrainDpo(const TrainDpoParams& params, engine::NodeResources& resources)
    : params_(params), metrics_(*resources.metrics), step_(params.model, "policy", kPairTotal, resources) {}

void TrainDpo::process(engine::MicroBatch& batch) {
  const engine::Layout& layout = batch.layout();
  const auto scores = finite_scores(batch, columns::kScore.name);   // [S]
  const std::span<const float> mask = ActionMask(batch).weights();  // [A], or empty
  const std::vector<SamplePair> pairs = pairs_with_actions(layout, scores, mask);
  const double count = record_pairs(metrics_, pairs.size(), batch.groups());
  if (pairs.empty()) return;
  step_.enter(batch);

  double loss_sum = 0;
  const UnitPasses<SamplePair> passes = passes_of_pairs(layout, pairs, step_.pass_tokens());
  for (const std::vector<SamplePair>& pass : passes.together) {
    const PairedSamples paired(pass);
    const at::Tensor logprobs = logprobs_of(batch, paired.samples(), batch.is_last() && passes.is_last(pass));
    loss_sum += accumulate_gradient(loss_of(batch, paired, mask, logprobs), "loss");
  }
  for (const SamplePair& pair : passes.apart) {
    const PairedSamples paired({pair});
    loss_sum += accumulate_in_parts(
        2, [&](size_t i) { return logprobs_of(batch, std::span(paired.samples()).subspan(i, 1), /*is_last=*/false); },
        [&](const at::Tensor& logprobs) { return loss_of(batch, paired, mask, logprobs); }, "loss");
  }
  step_.record(loss_sum, count);
}

at::Tensor TrainDpo::logprobs_of(const engine::MicroBatch& batch, std::span<const size_t> samples, bool is_last) {
  step_.begin_pass(counted_of_pairs(samples.size()), is_last);
  return policy_logprobs(step_.forward(), some_samples({batch.read(columns::kTokens)}, batch.layout(), samples),
                         params_.temperature.at(batch.iteration()));
}

at::Tensor TrainDpo::loss_of(const engine::MicroBatch& batch, const PairedSamples& paired, std::span<const float> mask,
                             const at::Tensor& logprobs) {
  at::Tensor reference;  // [A'], or undefined
  if (reads_reference(params_))
    reference = action_tensor(batch.read(columns::kReferenceLogprobs), batch.layout(), paired.samples());
  PreferenceInputs inputs = preference_inputs(paired, batch.layout(), mask, logprobs, reference);
  inputs.iteration = batch.iteration();
  return losses(inputs).sum();
}

at::Tensor TrainDpo::losses(const PreferenceInputs& inputs) {
  const PreferenceTerms terms = params_.objective.object->compute(inputs);
  check_losses(terms.losses, inputs.chosen.policy, inputs.chosen.lengths.numel(), "pair");
  const auto pairs = static_cast<double>(terms.losses.numel());
  for (const auto& [name, value] : preference_metrics(inputs, terms)) metrics_.mean(name, value, pairs);
  if (params_.nll_coefficient == 0) return terms.losses;
  return terms.losses.sub(inputs.chosen.policy.div(inputs.chosen.lengths).mul(params_.nll_coefficient));
}

void TrainDpo::end_iteration(const engine::Iteration& iteration) {
  step_.make();
  step_.end(iteration);
}

}  // namespace sluice::nodes
