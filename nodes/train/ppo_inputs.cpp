#include "nodes/train/ppo_inputs.h"

#include "nodes/columns/columns.h"
#include "nodes/objectives/action_draws.h"

namespace sluice::nodes {
namespace {

at::Tensor advantages_of(const TrainPpoParams& params, const PpoPass& pass, const PpoStep& step) {
  const at::Tensor plain = pass.column(columns::kAdvantages.spec());
  return params.whiten_advantages ? plain.sub(step.advantage_mean).mul(step.advantage_scale) : plain;
}

at::Tensor draws_of_pass(const TrainPpoParams& params, const PpoPass& pass, const PpoStep& step) {
  if (!params.needs().draws) return {};
  const auto group_index = [&](size_t group) { return pass.batch.group_index(group); };
  const ActionDraws of_step{.seed = step.seed, .iteration = step.iteration, .epoch = step.epoch};
  return draws_of(of_step, pass.batch.layout(), group_index, pass.chosen);
}

}  // namespace

ObjectiveInputs policy_inputs(const TrainPpoParams& params, const PpoPass& pass, const PolicyOutputs& outputs,
                              const PpoStep& step) {
  return {.logprobs = outputs.logprobs,
          .old_logprobs = old_logprobs(params, pass, outputs.logprobs),
          .rollout_logprobs = pass.column(columns::kRolloutLogprobs.spec()),
          .reference_logprobs = pass.column(columns::kReferenceLogprobs.spec()),
          .entropy = outputs.entropy,
          .advantages = advantages_of(params, pass, step),
          .mask = pass.mask(),
          .action_offsets = action_offsets(pass.batch.layout(), pass.chosen),
          .iteration = step.iteration,
          .draws = draws_of_pass(params, pass, step),
          .step = step.found};
}

ValueObjectiveInputs value_inputs(const TrainPpoParams& params, const PpoPass& pass, const at::Tensor& values,
                                  const PpoStep& step) {
  return {.values = values,
          .old_values = params.reads_old_values() ? pass.column(columns::kValues.spec()) : at::Tensor(),
          .returns = pass.column(columns::kReturns.spec()),
          .mask = pass.mask(),
          .iteration = step.iteration};
}

at::Tensor old_logprobs(const TrainPpoParams& params, const PpoPass& pass, const at::Tensor& logprobs) {
  if (!params.needs().old_logprobs) return {};
  if (!params.recompute_old_logprobs) return pass.column(params.old_logprobs_column());
  if (pass.recomputed.empty()) return logprobs.detach();  // the one step is not made yet
  return action_tensor(pass.recomputed, pass.batch.layout(), pass.chosen);
}

}  // namespace sluice::nodes
