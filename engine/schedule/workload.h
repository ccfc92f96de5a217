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
    std::unique_ptr<NodeBase> node;
  };

  std::map<std::string, std::shared_ptr<Model>> models;
  std::vector<Part> parts;  // by index of Plan::nodes
};

/// Loads the models and makes the nodes. Throws one UserError with the problems of all of them.
Workload make_workload(const Plan& plan, const RunFolder& run_folder, World world = {});

}  // namespace sluice::engine
