#include "nodes/train/train_ppo.h"

#include <ATen/core/grad_mode.h>

#include <numeric>
#include <optional>
#include <utility>

#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/passes.h"
#include "nodes/statistics/whitening.h"
#include "nodes/train/last_filled.h"
#include "nodes/train/ppo_inputs.h"
#include "nodes/train/train_ppo_totals.h"

namespace sluice::nodes {

using engine::MicroBatch;
using namespace train_ppo;

TrainPpo::TrainPpo(const TrainPpoParams& params, engine::NodeResources& resources)
    : params_(params),
      pass_tokens_(resources.pass_tokens),
      seed_(resources.seed),
      calendar_(params.calendar()),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      models_(params.actor, params.critic, resources),
      gradients_(params_, models_, resources) {}

void TrainPpo::begin_iteration(const engine::Iteration& iteration) {
  step_ = {.seed = seed_, .iteration = iteration.index, .found = {}};
  recomputed_.clear();
  models_.begin(iteration);
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
  const PpoCalendar::Due due = calendar_.at(step);
  if (due.mini_batch) {
    const ChosenGroups groups = groups_of(*due.mini_batch, batches);
    step_.epoch = *due.mini_batch / params_.mini_batches;
    if (due.look)
      look_at_mini_batch(*due.look, batches, groups);
    else
      train_on(batches, groups);
  }
  if (due.whitened) add_advantages(batches, groups_of(*due.whitened, batches));
}

void TrainPpo::process_iteration(int64_t step, std::span<MicroBatch>) {
  const PpoCalendar::Due due = calendar_.at(step);
  if (due.look)
    find(*due.look);
  else if (due.mini_batch)
    make_step();
  if (due.whitened) take_moments();
}

void TrainPpo::end_iteration(const engine::Iteration& iteration) {
  if (!params_.is_barrier()) make_step();
  metrics_.value("policy/optimizer_steps", static_cast<double>(step_.made));
  if (step_.made == 0) models_.warn_of_no_step(iteration);
}

void TrainPpo::make_step() {
  if (step_.made == 0) gradients_.record_policy();
  if (models_.step()) ++step_.made;
}

void TrainPpo::train_on(std::span<MicroBatch> batches, const ChosenGroups& groups) {
  const std::optional<size_t> last = last_filled(groups);
  for (size_t i = 0; i < batches.size(); ++i)
    accumulate(batches[i], samples_of_groups(batches[i].layout(), groups[i]), recomputed_[i], /*is_last=*/i == last);
}

ChosenGroups TrainPpo::groups_of(int64_t mini_batch, std::span<MicroBatch> batches) const {
  std::vector<DealtBatch> dealt;
  for (const MicroBatch& batch : batches) dealt.push_back({.slot = batch.slot(), .groups = batch.groups()});
  const Deal deal{
      .parts = params_.mini_batches, .seed = seed_, .iteration = step_.iteration, .epoch = mini_batch / params_.mini_batches};
  return groups_of_part(dealt, deal, mini_batch % params_.mini_batches);
}

// The first look computes log-probabilities, which are those of all looks: no weight changes between them.
void TrainPpo::look_at_mini_batch(int look, std::span<MicroBatch> batches, const ChosenGroups& groups) {
  const at::NoGradGuard no_gradient;
  if (look == 0) looked_at_.clear(), step_.found.clear();
  StepSums sums;
  size_t next = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    for (std::vector<size_t>& chosen : passes(batches[i], samples_of_groups(batches[i].layout(), groups[i]))) {
      const PpoPass pass = pass_of(batches[i], std::move(chosen), recomputed_[i]);
      if (look == 0) looked_at_.push_back(logprobs_now(pass));
      const PolicyOutputs outputs{.logprobs = looked_at_.at(next++), .entropy = {}};
      params_.objective.object->look_at(look, policy_inputs(params_, pass, outputs, step_), sums);
    }
  }
  for (size_t i = 0; i < kLookTotals.size(); ++i) totals_.mine(kLookTotals[i]).add(sums.moments[i]);
  totals_.my_counts(kLookTotals.front()) = std::move(sums.counts);
}

void TrainPpo::find(int look) {
  StepSums of_all{.moments = {}, .counts = totals_.counts_of_all(kLookTotals.front())};
  for (size_t i = 0; i < kLookTotals.size(); ++i) of_all.moments[i] = totals_.of_all(kLookTotals[i]);
  step_.found = params_.objective.object->find(look, step_.found, of_all);
}

// Before the first step those of the weights may be known already, bit for bit.
at::Tensor TrainPpo::logprobs_now(const PpoPass& pass) const {
  if (step_.made == 0 && !pass.recomputed.empty()) return old_logprobs(params_, pass, {});
  if (step_.made == 0 && params_.is_exact()) return pass.column(columns::kRolloutLogprobs.spec());
  return policy_logprobs(models_.actor(), pass.samples, temperature());
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
  step_.advantage_mean = advantages.mean();
  step_.advantage_scale = whitening_scale(advantages, {.whiten_variance = params_.whiten_variance, .whiten_epsilon = kEpsilon});
}

std::vector<float> TrainPpo::old_logprobs_of(const MicroBatch& batch) const {
  const at::NoGradGuard no_gradient;
  std::vector<float> logprobs(batch.actions());
  const auto compute = [&](const RaggedSamples& samples) { return policy_logprobs(models_.actor(), samples, temperature()); };
  fill_in_passes(columns_of(batch), batch.layout(), pass_tokens_, compute, logprobs);
  return logprobs;
}

void TrainPpo::accumulate(const MicroBatch& batch, std::span<const size_t> chosen, std::span<const float> recomputed,
                          bool is_last) {
  models_.enter(batch);
  std::vector<std::vector<size_t>> passes = this->passes(batch, chosen);
  for (size_t i = 0; i < passes.size(); ++i) {
    if (is_last && i + 1 == passes.size()) models_.expect_last_backward();
    gradients_.accumulate(pass_of(batch, std::move(passes[i]), recomputed), step_);
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

PpoPass TrainPpo::pass_of(const MicroBatch& batch, std::vector<size_t> chosen, std::span<const float> recomputed) const {
  RaggedSamples samples = some_samples(columns_of(batch), batch.layout(), chosen);
  return {.batch = batch, .chosen = std::move(chosen), .samples = std::move(samples), .recomputed = recomputed};
}

}  // namespace sluice::nodes
