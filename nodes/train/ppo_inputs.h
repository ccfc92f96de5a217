#pragma once

#include <ATen/core/Tensor.h>

#include "nodes/forward/forward.h"
#include "nodes/objectives/objective.h"
#include "nodes/train/ppo_pass.h"
#include "nodes/train/train_ppo.h"

namespace sluice::nodes {

/// What the policy objective of train_ppo sees of a pass in an optimizer step; `outputs` of the actor for it.
ObjectiveInputs policy_inputs(const TrainPpoParams& params, const PpoPass& pass, const PolicyOutputs& outputs,
                              const PpoStep& step);

/// What the value objective sees; `values` [A'] of the critic.
ValueObjectiveInputs value_inputs(const TrainPpoParams& params, const PpoPass& pass, const at::Tensor& values,
                                  const PpoStep& step);

/// The log-probabilities [A'] that ratios are taken from; undefined if there is no ratio. `logprobs` [A']: of the weights that
/// are trained, which is what they are where no step has been made.
at::Tensor old_logprobs(const TrainPpoParams& params, const PpoPass& pass, const at::Tensor& logprobs);

}  // namespace sluice::nodes
