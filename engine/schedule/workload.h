#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// The living parts of a plan: models and nodes, made but not run.
struct Workload {
  struct Part {
    std::unique_ptr<MetricsRecorder> metrics;  // outlives the node, as do the totals
    std::unique_ptr<Totals> totals;
    std::unique_ptr<GatheredFiles> files = std::make_unique<GatheredFiles>();
    std::unique_ptr<NodeBase> node;
  };

  using Models = std::map<std::string, std::shared_ptr<Model>>;

  Models models;
  std::vector<Part> parts;  // by index of Plan::nodes
};

/// This rank among those that the plan is for.
World world_of(const Plan& plan, const Reductions& ranks);

/// Loads the models and makes the nodes, of a rank, with what stands for those that it does not have. `ranks` and `publications`, by
/// which ranks that train send weights to those that sample, outlive them; null: without roles. Throws one UserError with the
/// problems of all of them.
Workload make_workload(const Plan& plan, const RunFolder& run_folder, Reductions& ranks, Publications* publications = nullptr);

}  // namespace sluice::engine
