#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/observe/costs.h"
#include "engine/plan/plan.h"
#include "engine/schedule/state/workload.h"
#include "engine/simulation/cost_model.h"

namespace sluice::engine {

/// Nodes that do no work but move the same groups, tokens and columns as the real ones: prompts and responses have lengths
/// drawn from those that were measured, filters keep the share that was kept, columns hold zeros and empty strings. What is
/// drawn depends only on the seed of the pipeline, iteration, group and sample, so two settings of one pipeline are compared on
/// the same samples.
struct SimulatedWorkload {
  Workload workload;

  /// What the step that has begun is about to do. Valid as long as the workload's nodes are.
  std::vector<std::function<StepWork()>> next_step;  // by index of Plan::paths
};

/// Of a rank. `plan` and `costs` outlive the nodes. `publish`: what a node that publishes a model does at its end, with the
/// version.
SimulatedWorkload make_simulated_workload(const Plan& plan, const Costs& costs, World world = {},
                                          std::function<void(const std::string& model, int64_t version)> publish = {});

}  // namespace sluice::engine
