#include "nodes/train/train_ppo.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/passes.h"
#include "nodes/models/model_parts.h"
#include "nodes/objectives/action_draws.h"
#include "nodes/objectives/kept_actions.h"
#include "nodes/statistics/whitening.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/ppo_minibatches.h"
#include "nodes/train/train_ppo_totals.h"

namespace sluice::nodes {

using engine::MicroBatch;
using namespace train_ppo;

namespace {

// Those of the actor are none of a critic that is another model.
RaggedSamples without_routes(RaggedSamples samples) {
  samples.routes = at::Tensor();
  return samples;
}

}  // namespace

TrainPpo::TrainPpo(const TrainPpoParams& params, engine::NodeResources& resources)
    : params_(params),
      actor_(trained_model(resources, params.actor)),
      critic_(params.has_critic() ? trained_model(resources, params.critic) : nullptr),
      pass_tokens_(resources.pass_tokens),
      seed_(resources.seed),
      looks_(params.looks()),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      policy_metrics_(metrics_, totals_),
      router_metrics_(*actor_, RouterMetrics::kGroup, resources) {
  if (trains_two_models()) critic_router_metrics_.emplace(*critic_, kCriticRouter, resources);
}

void TrainPpo::begin_iteration(const engine::Iteration& iteration) {
  iteration_ = iteration.index;
  recomputed_.clear();
  steps_ = 0;
  begin_training(*actor_, iteration, metrics_, "policy");
  if (trains_two_models()) begin_training(*critic_, iteration, metrics_, "value");
}

void TrainPpo::process(MicroBatch& batch) {
  std::vector<size_t> all(batch.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  accumulate(batch, all, {}, batch.is_last());
}

void TrainPpo::gather(int64_t step, std::span<MicroBatch> batches) {
  if (step == 0) {
    const bool recomputes = params_.recompute_old_logprobs && params_.needs().old_logprobs;
    for (const MicroBatch& batch : batches) recomputed_.push_back(recomputes ? old_logprobs_of(batch) : std::vector<float>());
  }
  const Stage stage = stage_of(step);
  if (is_mini_batch(stage.mini_batch)) {
    const ChosenGroups groups = groups_of(stage.mini_batch, batches);
    epoch_ = stage.mini_batch / params_.mini_batches;
    if (trains(stage))
      train_on(batches, groups);
    else
      look_at_mini_batch(stage, batches, groups);
  }
  if (whitens_next(stage)) add_advantages(batches, groups_of(stage.mini_batch + 1, batches));
}

void TrainPpo::process_iteration(int64_t step, std::span<MicroBatch>) {
  const Stage stage = stage_of(step);
  if (!trains(stage))
    find(stage.look);
  else if (is_mini_batch(stage.mini_batch))
    make_step();
  if (whitens_next(stage)) take_moments();
}

TrainPpo::Stage TrainPpo::stage_of(int64_t step) const {
  if (params_.whiten_advantages && step-- == 0) return {.mini_batch = -1, .look = looks_};
  return {.mini_batch = step / (looks_ + 1), .look = static_cast<int>(step % (looks_ + 1))};
}

bool TrainPpo::whitens_next(const Stage& stage) const {
  return params_.whiten_advantages && trains(stage) && is_mini_batch(stage.mini_batch + 1);
}

void TrainPpo::train_on(std::span<MicroBatch> batches, const ChosenGroups& groups) {
  const auto is_empty = [](const auto& chosen) { return chosen.empty(); };
  const auto behind = std::find_if_not(groups.rbegin(), groups.rend(), is_empty).base();  // the last that has some
  for (size_t i = 0; i < batches.size(); ++i) {
    const bool is_last = groups.begin() + static_cast<std::ptrdiff_t>(i) + 1 == behind;
    accumulate(batches[i], samples_of_groups(batches[i].layout(), groups[i]), recomputed_[i], is_last);
  }
}

// The first look computes log-probabilities, which are those of all looks: no weight changes between them.
void TrainPpo::look_at_mini_batch(const Stage& stage, std::span<MicroBatch> batches, const ChosenGroups& groups) {
  const at::NoGradGuard no_gradient;
  if (stage.look == 0) looked_at_.clear(), found_.clear();
  StepSums sums;
  size_t next = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    for (std::vector<size_t>& pass : passes(batches[i], samples_of_groups(batches[i].layout(), groups[i]))) {
      const Part part = part_of(batches[i], std::move(pass), recomputed_[i]);
      if (stage.look == 0) looked_at_.push_back(logprobs_now(part));
      const PolicyOutputs outputs{.logprobs = looked_at_.at(next++), .entropy = {}};
      params_.objective.object->look_at(stage.look, objective_inputs(part, outputs), sums);
    }
  }
  for (size_t i = 0; i < kLookTotals.size(); ++i) totals_.mine(kLookTotals[i]).add(sums.moments[i]);
  totals_.my_counts(kLookTotals.front()) = std::move(sums.counts);
}

void TrainPpo::find(int look) {
  StepSums of_all{.moments = {}, .counts = totals_.counts_of_all(kLookTotals.front())};
  for (size_t i = 0; i < kLookTotals.size(); ++i) of_all.moments[i] = totals_.of_all(kLookTotals[i]);
  found_ = params_.objective.object->find(look, found_, of_all);
}

// Before the first step those of the weights may be known already, bit for bit.
at::Tensor TrainPpo::logprobs_now(const Part& part) const {
  if (steps_ == 0 && !part.recomputed.empty()) return old_logprobs(part, {});
  if (steps_ == 0 && params_.is_exact()) return column(part, columns::kRolloutLogprobs.spec());
  return policy_logprobs(actor_->forward(), part.samples, temperature());
}

bool TrainPpo::is_mini_batch(int64_t mini_batch) const {
  return mini_batch >= 0 && mini_batch < params_.epochs * params_.mini_batches;
}

ChosenGroups TrainPpo::groups_of(int64_t mini_batch, std::span<MicroBatch> batches) const {
  std::vector<DealtBatch> dealt;
  for (const MicroBatch& batch : batches) dealt.push_back({.slot = batch.slot(), .groups = batch.groups()});
  const Deal deal{
      .parts = params_.mini_batches, .seed = seed_, .iteration = iteration_, .epoch = mini_batch / params_.mini_batches};
  return groups_of_part(dealt, deal, mini_batch % params_.mini_batches);
}

void TrainPpo::end_iteration(const engine::Iteration& iteration) {
  if (!params_.is_barrier()) make_step();
  metrics_.value("policy/optimizer_steps", static_cast<double>(steps_));
  if (steps_ > 0) return;
  warn_of_no_step(*actor_, iteration);
  if (trains_two_models()) warn_of_no_step(*critic_, iteration);
}

void TrainPpo::add_advantages(std::span<MicroBatch> batches, const ChosenGroups& groups) {
  for (size_t i = 0; i < batches.size(); ++i) {
    const MicroBatch& batch = batches[i];
    const std::vector<size_t> chosen = samples_of_groups(batch.layout(), groups[i]);
    std::vector<float> advantages = gathered_actions(batch.read(columns::kAdvantages), batch.layout(), chosen), mask;
    if (batch.has(columns::kMask.spec())) mask = gathered_actions(batch.read(columns::kMask), batch.layout(), chosen);
    add_moments({advantages}, {mask}, totals_.mine(kAdvantageTotal));
  }
}

void TrainPpo::take_moments() {
  constexpr double kEpsilon = 1e-8;  // keeps equal advantages at 0 instead of 0/0
  const ExactMoments& advantages = totals_.of_all(kAdvantageTotal);
  advantage_mean_ = advantages.mean();
  advantage_scale_ = whitening_scale(advantages, {.whiten_variance = params_.whiten_variance, .whiten_epsilon = kEpsilon});
}

std::vector<float> TrainPpo::old_logprobs_of(const MicroBatch& batch) const {
  const at::NoGradGuard no_gradient;
  std::vector<float> logprobs(batch.actions());
  const auto compute = [&](const RaggedSamples& samples) { return policy_logprobs(actor_->forward(), samples, temperature()); };
  fill_in_passes(columns_of(batch), batch.layout(), pass_tokens_, compute, logprobs);
  return logprobs;
}

void TrainPpo::accumulate(const MicroBatch& batch, std::span<const size_t> chosen, std::span<const float> recomputed,
                          bool is_last) {
  actor_->enter_slot(batch.slot());
  if (trains_two_models()) critic_->enter_slot(batch.slot());
  std::vector<std::vector<size_t>> passes = this->passes(batch, chosen);
  for (size_t i = 0; i < passes.size(); ++i) {
    if (is_last && i + 1 == passes.size()) expect_last_backward();
    accumulate_pass(part_of(batch, std::move(passes[i]), recomputed));
  }
}

std::vector<std::vector<size_t>> TrainPpo::passes(const MicroBatch& batch, std::span<const size_t> chosen) const {
  return passes_of(batch.layout(), samples_that_count(batch.layout(), ActionMask(batch).weights(), chosen), pass_tokens_);
}

SampleColumns TrainPpo::columns_of(const MicroBatch& batch) const {
  SampleColumns of{.tokens = batch.read(columns::kTokens)};
  if (params_.replay_routes) of.routes = batch.read(columns::kRoutes);
  return of;
}

TrainPpo::Part TrainPpo::part_of(const MicroBatch& batch, std::vector<size_t> pass, std::span<const float> recomputed) const {
  RaggedSamples samples = some_samples(columns_of(batch), batch.layout(), pass);
  return {.batch = batch, .chosen = std::move(pass), .samples = std::move(samples), .recomputed = recomputed};
}

void TrainPpo::expect_last_backward() {
  actor_->expect_last_backward();
  if (trains_two_models()) critic_->expect_last_backward();
}

void TrainPpo::accumulate_pass(const Part& part) {
  if (params_.is_one_model()) return accumulate_both(part);
  accumulate_actor(part);
  if (critic_) accumulate_critic(part);
}

at::Tensor TrainPpo::column(const Part& part, const engine::ColumnSpec& spec) const {
  if (!part.batch.has(spec)) return {};
  return action_tensor(part.batch.read(spec).entries<const float>(), part.batch.layout(), part.chosen);
}

at::Tensor TrainPpo::old_logprobs(const Part& part, const at::Tensor& logprobs) const {
  if (!params_.needs().old_logprobs) return {};
  if (!params_.recompute_old_logprobs) return column(part, params_.old_logprobs_column());
  if (part.recomputed.empty()) return logprobs.detach();  // the one step is not made yet
  return action_tensor(part.recomputed, part.batch.layout(), part.chosen);
}

at::Tensor TrainPpo::advantages(const Part& part) const {
  const at::Tensor plain = column(part, columns::kAdvantages.spec());
  return params_.whiten_advantages ? plain.sub(advantage_mean_).mul(advantage_scale_) : plain;
}

at::Tensor TrainPpo::draws(const Part& part) const {
  if (!params_.needs().draws) return {};
  const auto group_index = [&](size_t group) { return part.batch.group_index(group); };
  const ActionDraws of_step{.seed = seed_, .iteration = iteration_, .epoch = epoch_};
  return draws_of(of_step, part.batch.layout(), group_index, part.chosen);
}

// Objectives count actions or samples, and of those that are computed each has one that counts.
std::vector<double> TrainPpo::counted_by_policy(const Part& part) const {
  return params_.objective.object->counts_actions() ? counted_by_critic(part) : std::vector<double>(part.chosen.size(), 1.0);
}

std::vector<double> TrainPpo::counted_by_critic(const Part& part) const {
  const std::span<const float> mask = ActionMask(part.batch).weights();
  return counted_actions(part.batch.layout(), mask, part.chosen);
}

void TrainPpo::accumulate_both(const Part& part) {
  router_metrics_.expect(counted_by_policy(part));
  const PolicyAndValues outputs = policy_and_values(actor_->forward(), part.samples, temperature(), wants_entropy());
  const ObjectiveResult policy = policy_loss(part, outputs.policy), value = value_loss(part, outputs.values);
  SLUICE_CHECK(policy.count == value.count, "losses over different counts cannot be added");
  accumulate_gradient(policy.loss_sum.add(value.loss_sum, params_.value_coefficient), "policy and value loss");
  router_metrics_.record_passes();
  record_loss("policy/loss", kActorCount, policy.loss_sum.item().toDouble(), policy);
  record_loss("value/loss", kCriticCount, value.loss_sum.item().toDouble(), value);
}

void TrainPpo::accumulate_actor(const Part& part) {
  router_metrics_.expect(counted_by_policy(part));
  PolicyOutputs outputs;
  if (wants_entropy())
    outputs = policy_logprobs_and_entropy(actor_->forward(), part.samples, temperature());
  else
    outputs.logprobs = policy_logprobs(actor_->forward(), part.samples, temperature());
  const ObjectiveResult result = policy_loss(part, outputs);
  record_loss("policy/loss", kActorCount, accumulate_gradient(result.loss_sum, "policy loss"), result);
  router_metrics_.record_passes();
}

void TrainPpo::accumulate_critic(const Part& part) {
  critic_router_metrics_->expect(counted_by_critic(part));
  const ObjectiveResult result = value_loss(part, critic_values(critic_->forward(), without_routes(part.samples)));
  record_loss("value/loss", kCriticCount, accumulate_gradient(result.loss_sum, "value loss"), result);
  critic_router_metrics_->record_passes();
}

bool TrainPpo::trains_two_models() const { return critic_ != nullptr && !params_.is_one_model(); }

bool TrainPpo::wants_entropy() const { return params_.needs().entropy || steps_ == 0; }

ObjectiveResult TrainPpo::policy_loss(const Part& part, const PolicyOutputs& outputs) {
  if (steps_ == 0) add_policy_metrics(part, outputs);
  return params_.objective.object->compute(objective_inputs(part, outputs));
}

ObjectiveInputs TrainPpo::objective_inputs(const Part& part, const PolicyOutputs& outputs) const {
  return {.logprobs = outputs.logprobs,
          .old_logprobs = old_logprobs(part, outputs.logprobs),
          .rollout_logprobs = column(part, columns::kRolloutLogprobs.spec()),
          .reference_logprobs = column(part, columns::kReferenceLogprobs.spec()),
          .entropy = outputs.entropy,
          .advantages = advantages(part),
          .mask = column(part, columns::kMask.spec()),
          .action_offsets = action_offsets(part.batch.layout(), part.chosen),
          .iteration = iteration_,
          .draws = draws(part),
          .step = found_};
}

ObjectiveResult TrainPpo::value_loss(const Part& part, const at::Tensor& values) {
  ValueObjectiveInputs inputs{.values = values,
                              .old_values = {},
                              .returns = column(part, columns::kReturns.spec()),
                              .mask = column(part, columns::kMask.spec()),
                              .iteration = iteration_};
  if (params_.reads_old_values()) inputs.old_values = column(part, columns::kValues.spec());
  if (steps_ == 0) {
    const KeptActions kept(inputs.mask, {0, inputs.values.numel()}, inputs.returns.options());
    policy_metrics_.add_values(kept.of(inputs.values.detach()), kept.of(inputs.returns));
  }
  return params_.value_objective.object->compute(inputs);
}

void TrainPpo::record_loss(const char* name, const char* count, double loss_sum, const ObjectiveResult& result) {
  if (result.count == 0) return;
  metrics_.mean(name, loss_sum / result.count, result.count);
  record(result.metrics, metrics_);
  totals_.add(count, result.count);
}

void TrainPpo::add_policy_metrics(const Part& part, const PolicyOutputs& outputs) {
  const at::Tensor logprobs = outputs.logprobs.detach();
  const KeptActions kept(column(part, columns::kMask.spec()), {0, logprobs.numel()}, logprobs.options());
  if (kept.count() == 0) return;
  const at::Tensor rollout = column(part, columns::kRolloutLogprobs.spec());
  if (params_.is_exact()) require_same_bits(logprobs, rollout, column(part, columns::kMask.spec()), part.batch, part.chosen);
  const at::Tensor reference = column(part, columns::kReferenceLogprobs.spec());
  if (rollout.defined()) policy_metrics_.add_sampled(kept.of(logprobs), kept.of(rollout));
  if (reference.defined()) policy_metrics_.add_reference(kept.of(logprobs), kept.of(reference));
  policy_metrics_.add_entropy(kept.of(outputs.entropy.detach()));
}

void TrainPpo::make_step() {
  if (steps_ == 0) policy_metrics_.record_totals();
  router_metrics_.record_step();
  if (critic_router_metrics_) critic_router_metrics_->record_step();
  const double actor_count = totals_.sum_of_all(kActorCount);
  if (actor_count == 0) return;
  if (trains_two_models()) {  // both make the step or none does
    require_finite_gradients(*actor_);
    require_finite_gradients(*critic_);
  }
  metrics_.mean("policy/grad_norm", step_optimizer(*actor_, actor_count));
  if (trains_two_models()) metrics_.mean("value/grad_norm", step_optimizer(*critic_, totals_.sum_of_all(kCriticCount)));
  ++steps_;
}

}  // namespace sluice::nodes
