#include "nodes/train_ppo.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "nodes/columns.h"
#include "nodes/forward.h"
#include "nodes/optimizer_step.h"
#include "nodes/ppo_minibatches.h"

namespace sluice::nodes {

using engine::DType;
using engine::Extent;
using engine::MicroBatch;
using engine::ModelUse;

namespace {

engine::ColumnSpec action_column(const std::string& name) { return {name, DType::kFloat32, Extent::kAction}; }

bool has_critic(const TrainPpoParams& params) { return !params.critic.empty(); }
bool reads_old_logprobs(const TrainPpoParams& params) { return params.objective.object->reads_old_logprobs(); }
bool reads_old_values(const TrainPpoParams& params) {
  return has_critic(params) && params.value_objective.object->reads_old_values();
}

bool takes_several_steps(const TrainPpoParams& params) { return params.epochs > 1 || params.mini_batches > 1; }

void find_contradictions(const TrainPpoParams& params, engine::Findings& findings) {
  if (!has_critic(params) && findings.changed("value_objective")) {
    findings.without_effect("value_objective", "value_objective has no effect without a critic",
                            "name a critic, or remove value_objective");
  }
  if (!reads_old_logprobs(params) && findings.changed("old_logprobs")) {
    findings.without_effect("old_logprobs",
                            "old_logprobs has no effect: objective \"" + params.objective.type + "\" does not read it",
                            "remove old_logprobs");
  }
  const char* repeated = params.epochs > 1 ? "epochs" : "mini_batches";
  if (!params.objective.object->corrects_off_policy() && takes_several_steps(params)) {
    findings.warning(repeated,
                     "objective \"" + params.objective.type +
                         "\" is right for one step an iteration: after it the samples are of older weights",
                     "epochs = 1 and mini_batches = 1, or an objective with a ratio, such as ppo_clip");
  }
}

}  // namespace

void TrainPpo::describe(engine::Contract<TrainPpoParams>& c) {
  using P = TrainPpoParams;
  c.type("train_ppo", "trains a policy, and a critic, on the advantages of an iteration");
  c.model("actor", &P::actor, ModelUse::kUpdates, "language_model").required().doc("the policy");
  c.model("critic", &P::critic, ModelUse::kUpdates, "value").doc("trained on the returns; empty: none");
  c.param("epochs", &P::epochs).between(1, 1000).doc("passes over the iteration");
  c.param("mini_batches", &P::mini_batches).between(1, 1000000).doc("optimizer steps of a pass, on groups dealt out at random");
  c.param("objective", &P::objective).doc("loss of the policy");
  c.param("value_objective", &P::value_objective).doc("loss of the critic");
  c.param("old_logprobs", &P::old_logprobs).doc("column with the log-probabilities of the weights that sampled");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.reads(columns::kTokens, columns::kAdvantages);
  c.reads_if(has_critic, columns::kReturns);
  c.reads_if(reads_old_values, columns::kValues);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    if (reads_old_logprobs(params)) needs.reads.push_back(action_column(params.old_logprobs));
    if (!params.objective.object->corrects_off_policy()) needs.uncorrected_by = "objective";
    needs.must_agree["temperature"] = params.temperature;
  });
  c.iteration_scope_if([](const P& p) { return p.mini_batches > 1; }, "mini_batches > 1");
  c.iteration_scope_if([](const P& p) { return p.epochs > 1; }, "epochs > 1");
  c.check(find_contradictions);
  c.metric("policy_loss", "mean loss of an action");
  c.metric("value_loss", "mean loss of the critic on an action");
  c.metric("grad_norm", "norm of the actor's gradients before clipping, mean over the steps");
  c.metric("critic_grad_norm", "the same of the critic");
  c.metric("optimizer_steps", "steps of the iteration");
  c.metric("logprob_difference_mean", "before the first step: distance of an action's log-probability from the old one");
  c.metric("logprob_difference_max", "the largest such distance");
  c.metric("explained_variance", "before the first step: 1 - variance(return - value) / variance(return)");
}

TrainPpo::TrainPpo(const TrainPpoParams& params, engine::NodeResources& resources)
    : params_(params),
      actor_(language_model(resources, params.actor)),
      critic_(has_critic(params) ? language_model(resources, params.critic) : nullptr),
      seed_(resources.seed),
      metrics_(*resources.metrics),
      reducer_(*resources.reducer) {}

void TrainPpo::begin_iteration(const engine::Iteration& iteration) {
  iteration_ = iteration.index;
  steps_ = 0;
  actions_ = 0;
  explained_ = {};
}

void TrainPpo::process(MicroBatch& batch) {
  std::vector<size_t> all(batch.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  accumulate(batch, all);
}

void TrainPpo::process_iteration(std::span<MicroBatch> batches) {
  size_t groups = 0;
  for (const MicroBatch& batch : batches) groups += batch.groups();
  for (int64_t epoch = 0; epoch < params_.epochs; ++epoch) train_epoch(batches, groups, epoch);
}

void TrainPpo::train_epoch(std::span<MicroBatch> batches, size_t groups, int64_t epoch) {
  for (const std::vector<size_t>& part : deal_groups(groups, params_.mini_batches, seed_, iteration_, epoch)) {
    size_t first = 0;
    for (const MicroBatch& batch : batches) {
      accumulate(batch, samples_of_groups(batch.layout(), groups_within(part, first, batch.groups())));
      first += batch.groups();
    }
    step();
  }
}

void TrainPpo::end_iteration(const engine::Iteration&) {
  const bool steps_were_made = params_.epochs > 1 || params_.mini_batches > 1;
  if (!steps_were_made) step();
  metrics_.value("optimizer_steps", static_cast<double>(steps_));
  if (critic_) record_explained();
}

void TrainPpo::accumulate(const MicroBatch& batch, std::span<const size_t> chosen) {
  const RaggedSamples samples = some_samples(batch.read(columns::kTokens), batch.layout(), chosen);
  if (samples.actions == 0) return;
  accumulate_actor(batch, chosen, samples);
  if (critic_) accumulate_critic(batch, chosen, samples);
  actions_ += static_cast<double>(samples.actions);
}

void TrainPpo::accumulate_actor(const MicroBatch& batch, std::span<const size_t> chosen, const RaggedSamples& samples) {
  ObjectiveInputs inputs;
  inputs.logprobs = policy_logprobs(actor_->transformer(), samples, params_.temperature);
  inputs.advantages = action_tensor(batch.read(columns::kAdvantages), batch.layout(), chosen);
  if (reads_old_logprobs(params_)) {
    const auto old_logprobs = batch.read(action_column(params_.old_logprobs)).entries<const float>();
    inputs.old_logprobs = action_tensor(old_logprobs, batch.layout(), chosen);
    if (steps_ == 0) record_differences(inputs.logprobs.detach(), inputs.old_logprobs);
  }
  const ObjectiveResult result = params_.objective.object->compute(inputs);
  metrics_.mean("policy_loss", accumulate_gradient(result.loss_sum, "policy loss") / result.count, result.count);
  record(result.metrics, metrics_);
}

void TrainPpo::accumulate_critic(const MicroBatch& batch, std::span<const size_t> chosen, const RaggedSamples& samples) {
  ValueObjectiveInputs inputs;
  inputs.values = critic_values(critic_->transformer(), samples);
  inputs.returns = action_tensor(batch.read(columns::kReturns), batch.layout(), chosen);
  if (reads_old_values(params_)) inputs.old_values = action_tensor(batch.read(columns::kValues), batch.layout(), chosen);
  if (steps_ == 0) add_explained(inputs.values.detach(), inputs.returns);
  const ObjectiveResult result = params_.value_objective.object->compute(inputs);
  metrics_.mean("value_loss", accumulate_gradient(result.loss_sum, "value loss") / result.count, result.count);
  record(result.metrics, metrics_);
}

void TrainPpo::step() {
  double actions = actions_;
  reducer_.sum({&actions, 1});
  actions_ = 0;
  if (actions == 0) return;
  if (critic_) {  // both models make the step or none does
    require_finite_gradients(*actor_);
    require_finite_gradients(*critic_);
  }
  metrics_.mean("grad_norm", step_optimizer(*actor_, actions));
  if (critic_) metrics_.mean("critic_grad_norm", step_optimizer(*critic_, actions));
  ++steps_;
}

void TrainPpo::record_differences(const at::Tensor& logprobs, const at::Tensor& old_logprobs) {
  const at::Tensor differences = logprobs.sub(old_logprobs).abs();  // [A]
  metrics_.mean("logprob_difference_mean", differences.mean().item().toDouble(), static_cast<double>(differences.numel()));
  metrics_.maximum("logprob_difference_max", differences.max().item().toDouble());
}

void TrainPpo::add_explained(const at::Tensor& values, const at::Tensor& returns) {
  const at::Tensor wide_returns = returns.to(at::kDouble), errors = wide_returns.sub(values.to(at::kDouble));
  explained_.count += static_cast<double>(values.numel());
  explained_.returns += wide_returns.sum().item().toDouble();
  explained_.returns_squared += wide_returns.square().sum().item().toDouble();
  explained_.errors += errors.sum().item().toDouble();
  explained_.errors_squared += errors.square().sum().item().toDouble();
}

void TrainPpo::record_explained() {
  std::array<double, 5> sums{explained_.count, explained_.returns, explained_.returns_squared, explained_.errors,
                             explained_.errors_squared};
  reducer_.sum(sums);
  const auto [count, returns, returns_squared, errors, errors_squared] = sums;
  const double return_variance = returns_squared - returns * returns / count;  // times count; NaN without actions
  const double error_variance = errors_squared - errors * errors / count;
  if (return_variance > 0) metrics_.value("explained_variance", 1 - error_variance / return_variance);
}

}  // namespace sluice::nodes
