#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/outside_work.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// The living parts of a plan: models and nodes, made but not run.
struct Workload {
  struct Part {
    std::unique_ptr<MetricsRecorder> metrics;  // outlives the node, as do the totals
    std::unique_ptr<Totals> totals;
    std::unique_ptr<GatheredFiles> files = std::make_unique<GatheredFiles>();
    std::unique_ptr<NodeResources> resources;  // likewise, where it stays: a node may keep a reference; null: it is absent
    std::unique_ptr<NodeBase> node;
  };

  using Models = std::map<std::string, std::shared_ptr<Model>>;

  std::unique_ptr<OutsideWork> outside = std::make_unique<OutsideWork>();    // outlives the nodes
  std::unique_ptr<CommonMemory> own_memory = std::make_unique<OwnMemory>();  // outlives the models
  Models models;
  std::vector<Part> parts;  // by index of Plan::nodes
};

/// This rank among those that the plan is for.
World world_of(const Plan& plan, const Reductions& ranks);

/// Through which a rank works with others. All outlive the workload.
struct LinkedRanks {
  Reductions& numbers;
  CommonMemory* memory = nullptr;        // of those that train, or sample, beside this one; null: it has its memory alone
  Publications* publications = nullptr;  // by which these send weights to those that sample; null: there are no roles
  PassGroups* passes = nullptr;          // in which this rank computes passes with others; null: it computes its own
};

/// Loads the models that this rank has. Throws one UserError with the problems of all of them.
void load_models(const Plan& plan, const LinkedRanks& ranks, Workload& workload);

/// Loads the models and makes the nodes, of a rank that schedules, with what stands for those that it does not have. Throws one
/// UserError with the problems of all of them.
Workload make_workload(const Plan& plan, const RunFolder& run_folder, const LinkedRanks& ranks);

}  // namespace sluice::engine
