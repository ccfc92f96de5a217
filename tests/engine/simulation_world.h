#pragma once

#include <memory>

#include "engine/contract/spec/pipeline_builder.h"
#include "engine/observe/costs.h"
#include "engine/plan/plan.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::testing {

/// A proven plan of toys with the registry that it refers to.
struct ToyPlan {
  std::unique_ptr<Registry> registry;
  Plan plan;
};

/// Throws UserError when check refuses it.
ToyPlan toy_plan(const PipelineBuilder& builder, int ranks = 1);

/// A source of `groups` groups of one sample of at most 4 tokens and a rollout on `on`; every group is a micro-batch of its own.
PipelineBuilder toy_pipeline(int64_t iterations, int64_t groups, int64_t budget, const std::string& on, bool trained = false);

/// A node that reads what the rollout wrote.
void add_mix(PipelineBuilder& builder, const std::string& name, const std::string& input, const std::string& on,
             bool barrier = false);

/// "train" and "publish" behind `input`, on "cpu".
void add_training(PipelineBuilder& builder, const std::string& input);

/// Every prompt of `prompt` tokens, every response of `response`.
Costs costs_with_lengths(int64_t prompt, int64_t response);

/// The same, measured on as many cores as the plan's executors have.
Costs on_the_cores_of(const Plan& plan, Costs costs);

}  // namespace sluice::engine::testing
