#include "nodes/train/ppo_gradients.h"

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/objectives/kept_actions.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/ppo_inputs.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_ppo_totals.h"

namespace sluice::nodes {

using namespace train_ppo;

namespace {

// Those of the actor are none of a critic that is another model.
RaggedSamples without_routes(RaggedSamples samples) {
  samples.routes = at::Tensor();
  return samples;
}

}  // namespace

PpoGradients::PpoGradients(const TrainPpoParams& params, ActorCritic& models, const engine::NodeResources& resources)
    : params_(params),
      models_(models),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      policy_metrics_(metrics_, totals_) {}

void PpoGradients::accumulate(const PpoPass& pass, const PpoStep& step) {
  if (params_.is_one_model()) return accumulate_both(pass, step);
  accumulate_actor(pass, step);
  if (models_.has_critic()) accumulate_critic(pass, step);
}

void PpoGradients::accumulate_both(const PpoPass& pass, const PpoStep& step) {
  models_.routers_of_actor().expect(counted_by_policy(pass));
  const PolicyAndValues outputs =
      policy_and_values(models_.actor(), pass.samples, params_.temperature.at(step.iteration), wants_entropy(step));
  const ObjectiveResult policy = policy_loss(pass, outputs.policy, step), value = value_loss(pass, outputs.values, step);
  SLUICE_CHECK(policy.count == value.count, "losses over different counts cannot be added");
  accumulate_gradient(policy.loss_sum.add(value.loss_sum, params_.value_coefficient), "policy and value loss");
  models_.routers_of_actor().record_passes();
  record_loss("policy/loss", kActorCount, policy.loss_sum.item().toDouble(), policy);
  record_loss("value/loss", kCriticCount, value.loss_sum.item().toDouble(), value);
}

void PpoGradients::accumulate_actor(const PpoPass& pass, const PpoStep& step) {
  models_.routers_of_actor().expect(counted_by_policy(pass));
  PolicyOutputs outputs;
  if (wants_entropy(step))
    outputs = policy_logprobs_and_entropy(models_.actor(), pass.samples, params_.temperature.at(step.iteration));
  else
    outputs.logprobs = policy_logprobs(models_.actor(), pass.samples, params_.temperature.at(step.iteration));
  const ObjectiveResult result = policy_loss(pass, outputs, step);
  record_loss("policy/loss", kActorCount, accumulate_gradient(result.loss_sum, "policy loss"), result);
  models_.routers_of_actor().record_passes();
}

void PpoGradients::accumulate_critic(const PpoPass& pass, const PpoStep& step) {
  models_.routers_of_critic().expect(pass.counted_by_actions());
  const ObjectiveResult result = value_loss(pass, critic_values(models_.critic(), without_routes(pass.samples)), step);
  record_loss("value/loss", kCriticCount, accumulate_gradient(result.loss_sum, "value loss"), result);
  models_.routers_of_critic().record_passes();
}

// Objectives count actions or samples, and of those that are computed each has one that counts.
std::vector<double> PpoGradients::counted_by_policy(const PpoPass& pass) const {
  return params_.objective.object->counts_actions() ? pass.counted_by_actions() : std::vector<double>(pass.chosen.size(), 1.0);
}

bool PpoGradients::wants_entropy(const PpoStep& step) const { return params_.needs().entropy || step.made == 0; }

ObjectiveResult PpoGradients::policy_loss(const PpoPass& pass, const PolicyOutputs& outputs, const PpoStep& step) {
  if (step.made == 0) add_policy_metrics(pass, outputs);
  return params_.objective.object->compute(policy_inputs(params_, pass, outputs, step));
}

ObjectiveResult PpoGradients::value_loss(const PpoPass& pass, const at::Tensor& values, const PpoStep& step) {
  const ValueObjectiveInputs inputs = value_inputs(params_, pass, values, step);
  if (step.made == 0) {
    const KeptActions kept(inputs.mask, {0, inputs.values.numel()}, inputs.returns.options());
    policy_metrics_.add_values(kept.of(inputs.values.detach()), kept.of(inputs.returns));
  }
  return params_.value_objective.object->compute(inputs);
}

void PpoGradients::record_loss(const char* name, const char* count, double loss_sum, const ObjectiveResult& result) {
  if (result.count == 0) return;
  metrics_.mean(name, loss_sum / result.count, result.count);
  record(result.metrics, metrics_);
  totals_.add(count, result.count);
}

void PpoGradients::add_policy_metrics(const PpoPass& pass, const PolicyOutputs& outputs) {
  const at::Tensor logprobs = outputs.logprobs.detach(), mask = pass.mask();
  const KeptActions kept(mask, {0, logprobs.numel()}, logprobs.options());
  if (kept.count() == 0) return;
  const at::Tensor rollout = pass.column(columns::kRolloutLogprobs.spec());
  if (params_.is_exact()) require_same_bits(logprobs, rollout, mask, pass.batch, pass.chosen);
  const at::Tensor reference = pass.column(columns::kReferenceLogprobs.spec());
  if (rollout.defined()) policy_metrics_.add_sampled(kept.of(logprobs), kept.of(rollout));
  if (reference.defined()) policy_metrics_.add_reference(kept.of(logprobs), kept.of(reference));
  policy_metrics_.add_entropy(kept.of(outputs.entropy.detach()));
}

}  // namespace sluice::nodes
