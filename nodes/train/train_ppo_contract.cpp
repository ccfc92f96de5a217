#include <string>

#include "nodes/columns/columns.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/policy_metrics.h"
#include "nodes/train/router_metrics.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_ppo_totals.h"

// What `train_ppo` says of itself.
namespace sluice::nodes {

using engine::ModelUse;
using namespace train_ppo;

namespace {

void find_contradictions(const TrainPpoParams& params, engine::Findings& findings) {
  if (!params.has_critic() && findings.changed("value_objective")) {
    findings.without_effect("value_objective", "value_objective has no effect without a critic",
                            "name a critic, or remove value_objective");
  }
  if (!params.is_one_model() && findings.changed("value_coefficient")) {
    findings.without_effect("value_coefficient", "value_coefficient has no effect unless actor and critic are one model",
                            "the learning_rate of the critic, or one model with head = \"policy+value\"");
  }
  if (params.is_one_model() && !params.objective.object->counts_actions()) {
    findings.error("objective", "the losses of one model are added: both must be means over actions",
                   "aggregation = \"token_mean\" of the objective, or a critic of its own");
  }
  for (const char* key : {"old_logprobs", "recompute_old_logprobs"}) {
    if (params.needs().old_logprobs || !findings.changed(key)) continue;
    findings.without_effect(key, std::string(key) + " has no effect: objective \"" + params.objective.type + "\" takes no ratio",
                            std::string("remove ") + key);
  }
  if (!params.whiten_advantages && findings.changed("whiten_variance")) {
    findings.without_effect("whiten_variance", "whiten_variance has no effect unless whiten_advantages is true",
                            "whiten_advantages = true, or remove whiten_variance");
  }
  if (params.recompute_old_logprobs && findings.changed("old_logprobs")) {
    findings.without_effect("old_logprobs", "old_logprobs has no effect while they are recomputed",
                            "remove old_logprobs, or recompute_old_logprobs = false");
  }
  if (params.is_exact() && findings.changed("recompute_old_logprobs") && params.recompute_old_logprobs) {
    findings.without_effect("recompute_old_logprobs",
                            "with on_policy = \"exact\" the same log-probabilities would be computed again",
                            "remove recompute_old_logprobs");
  }
  if (params.needs().rollout_logprobs && params.reads_old_column() && params.old_logprobs == columns::kRolloutLogprobs.name) {
    findings.warning(
        "objective",
        "correction and rejection of the objective do nothing: old_logprobs is \"rollout_logprobs\", so both policies "
        "are the one that sampled",
        "recompute_old_logprobs = true, or remove them");
  }
  const char* repeated = params.epochs > 1 ? "epochs" : "mini_batches";
  if (!params.objective.object->corrects_off_policy() && params.takes_several_steps()) {
    findings.warning(repeated,
                     "objective \"" + params.objective.type +
                         "\" is right for one step an iteration: after it the samples are of older weights",
                     "epochs = 1 and mini_batches = 1, or an objective with a ratio, such as ppo_clip");
  }
}

}  // namespace

void TrainPpo::describe(engine::Contract<TrainPpoParams>& c) {
  using P = TrainPpoParams;
  const auto has_critic = [](const P& params) { return params.has_critic(); };
  const auto trains_a_critic = [](const P& params) { return params.trains_a_critic(); };
  const auto reads_old_values = [](const P& params) { return params.reads_old_values(); };
  c.type("train_ppo", "trains a policy, and a critic, on the advantages of an iteration");
  c.model("actor", &P::actor, ModelUse::kUpdates, "language_model").required().doc("the policy");
  c.model("critic", &P::critic, ModelUse::kUpdates, "value").doc("trained on the returns; empty: none");
  c.param("epochs", &P::epochs).between(1, 1000).doc("times that it goes over the iteration");
  c.param("mini_batches", &P::mini_batches).between(1, 1000000).doc("optimizer steps each time, on groups dealt out at random");
  c.param("objective", &P::objective).doc("loss of the policy");
  c.param("value_objective", &P::value_objective).doc("loss of the critic");
  c.param("value_coefficient", &P::value_coefficient)
      .at_least(0)
      .doc("weight of the value objective beside the policy's, where actor and critic are one model");
  c.param("old_logprobs", &P::old_logprobs).doc("column with the log-probabilities of the weights that sampled");
  c.param("recompute_old_logprobs", &P::recompute_old_logprobs)
      .doc("ratios are taken from the weights before the iteration's first step, whose log-probabilities are computed here");
  c.param("on_policy", &P::on_policy)
      .doc("\"exact\": the run ends where a sample's log-probabilities are not, bit for bit, those of the weights that train")
      .harmless();
  c.param("whiten_advantages", &P::whiten_advantages).doc("zero mean, unit variance over the actions of each optimizer step");
  c.param("whiten_variance", &P::whiten_variance).doc("squares over n - 1 (bessel) or over n (biased)");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.param("replay_routes", &P::replay_routes)
      .doc("of a mixture of experts: the experts that sampled a token train on it, as `generate` writes them with routes = true");
  c.reads(columns::kTokens, columns::kAdvantages);
  c.reads_if(has_critic, columns::kReturns);
  c.reads_if([](const P& params) { return params.replay_routes; }, columns::kRoutes);
  c.reads_if(reads_old_values, columns::kValues);
  c.reads_if_written(columns::kMask, columns::kRolloutLogprobs, columns::kReferenceLogprobs);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    const ObjectiveNeeds of_objective = params.needs();
    if (params.reads_old_column()) needs.reads.push_back(params.old_logprobs_column());
    if (of_objective.rollout_logprobs || params.is_exact()) needs.reads.push_back(columns::kRolloutLogprobs.spec());
    if (of_objective.reference_logprobs) needs.reads.push_back(columns::kReferenceLogprobs.spec());
    if (!params.objective.object->corrects_off_policy())
      needs.uncorrected_by = "objective";
    else if (params.recompute_old_logprobs && !of_objective.rollout_logprobs)
      needs.uncorrected_by = "recompute_old_logprobs";
    if (params.is_exact()) needs.exact_by = "on_policy";
    if (params.looks() > 0) {
      needs.scope = engine::Scope::kIteration;
      needs.scope_reason = "objective = \"" + params.objective.type + "\"";
      needs.totals.insert(needs.totals.end(), kLookTotals.begin(), kLookTotals.end());
    }
    needs.must_agree["temperature"] = params.temperature;
    if (params.replay_routes) needs.routes_by = "replay_routes", needs.routes_column = columns::kRoutes.spec().name;
  });
  c.iteration_scope_if([](const P& p) { return p.mini_batches > 1; }, "mini_batches > 1");
  c.iteration_scope_if([](const P& p) { return p.epochs > 1; }, "epochs > 1");
  c.iteration_scope_if([](const P& p) { return p.whiten_advantages; }, "whiten_advantages = true");
  c.check(find_contradictions);
  c.metric("policy/loss", engine::Metric::kMean, "mean loss, over what the objective aggregates");
  c.metric_if(has_critic, "value/loss", engine::Metric::kMean, "mean loss of the critic on an action");
  c.metric("policy/grad_norm", engine::Metric::kMean, "norm of the actor's gradients before clipping, mean over the steps");
  c.metric_if(trains_a_critic, "value/grad_norm", engine::Metric::kMean, "the same of the critic, if it is another model");
  c.metric("policy/optimizer_steps", engine::Metric::kValue, "steps of the iteration");
  describe_learning_rate(c, "policy");
  c.metric_if(trains_a_critic, "value/learning_rate", engine::Metric::kValue, "the same of the critic");
  c.metrics_of(&P::objective);
  c.metrics_of_if(has_critic, &P::value_objective);
  PolicyMetrics::describe(c);
  RouterMetrics::describe(c, "actor");
  RouterMetrics::describe(c, "critic", kCriticRouter, trains_a_critic);
  c.total(kActorCount);
  c.total_if(has_critic, kCriticCount);
  c.total_if([](const P& p) { return p.whiten_advantages; }, kAdvantageTotal);
  c.steps([](const P& p) { return p.calendar().steps(); });
}

}  // namespace sluice::nodes
