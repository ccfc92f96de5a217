#include "engine/schedule/workload.h"

#include <algorithm>

#include "base/error.h"
#include "engine/memory/memory_bound.h"
#include "engine/schedule/absent_nodes.h"

namespace sluice::engine {
namespace {

struct Loading {
  const Plan& plan;
  const LinkedRanks& ranks;
  Workload& workload;
  Problems& problems;
};

void load_model(const PlanModel& model, const Loading& loading) {
  auto& [plan, ranks, workload, problems] = loading;
  const std::optional<ModelUsage> used = plan.usage_on(ranks.numbers.world().rank, model);
  if (!used) return;
  ModelUsage usage = *used;
  usage.publications = ranks.publications;
  usage.world = world_of(plan, ranks.numbers);
  if (usage.updated && plan.owners() > 1) usage.gradients = ranks.numbers.gradients(model.name);
  usage.shard_optimizer = plan.shards_optimizer();
  if (plan.shards_parameters() && usage.world.owns_slots())
    usage.common = ranks.memory ? ranks.memory : workload.own_memory.get();
  if (!model.facts.base_of.empty()) usage.base = workload.models[model.facts.base_of];
  try {
    workload.models[model.name] = plan.model_type->load(model.params, usage);
  } catch (const UserError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

void load_models(const Loading& loading) {
  for (const PlanModel& model : loading.plan.models) {
    if (model.facts.base_of.empty()) load_model(model, loading);
  }
  if (has_errors(loading.problems)) return;
  for (const PlanModel& model : loading.plan.models) {
    if (!model.facts.base_of.empty()) load_model(model, loading);
  }
}

NodeResources resources_of(const Plan& plan, const PlanNode& node, const Workload& workload, const RunFolder& run_folder) {
  const PlanPath& path = plan.paths[static_cast<size_t>(node.path)];
  NodeResources resources{.node = node.name, .seed = static_cast<uint64_t>(plan.pipeline.seed)};
  const bool makes = node.type->kind == NodeKind::kRollout;
  resources.tokens_in_flight = makes ? plan.making_tokens(path) : path.tokens_in_flight;
  resources.pass_tokens = plan.budget.pass_tokens.value;
  const bool on_demand = takes_on_demand(plan.budget, *node.type, node.needs);
  resources.admission = on_demand ? Admission::kOnDemand : Admission::kWorstCase;
  resources.kv_bytes = predict_kv_bytes(plan, path, plan.making_tokens());
  if (!path.measures()) resources.update = plan.schedule.update;
  resources.update_kv = plan.schedule.update_kv;
  resources.run_folder = run_folder;
  resources.threads = std::ranges::find(plan.executors, node.executor, &PlanExecutor::name)->threads;
  for (const ModelNeed& need : node.needs.models) resources.models[need.model] = workload.models.at(need.model);
  return resources;
}

}  // namespace

World world_of(const Plan& plan, const Reductions& ranks) {
  World world = ranks.world();
  SLUICE_CHECK(world.size == plan.ranks,
               "a plan for " + std::to_string(plan.ranks) + " ranks runs on " + std::to_string(world.size));
  world.slots = static_cast<int>(plan.slots());
  world.owning = plan.owners();
  return world;
}

Workload make_workload(const Plan& plan, const RunFolder& run_folder, const LinkedRanks& linked) {
  Reductions& ranks = linked.numbers;
  Workload workload;
  Problems problems;
  load_models({plan, linked, workload, problems});
  if (has_errors(problems)) throw UserError(problems);

  for (int index = 0; index < std::ssize(plan.nodes); ++index) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(index)];
    Workload::Part& part = workload.parts.emplace_back();
    part.metrics = std::make_unique<MetricsRecorder>(node.needs.metrics, node.metrics_prefix);
    part.totals = std::make_unique<Totals>(node.needs.totals);
    if (!plan.has(ranks.world().rank, index)) {
      part.node = absent_node(plan, index);
      continue;
    }
    NodeResources resources = resources_of(plan, node, workload, run_folder);
    resources.metrics = part.metrics.get();
    resources.totals = part.totals.get();
    if (plan.owners() > 1) resources.run_folder.gathered = part.files.get();
    resources.world = world_of(plan, ranks);
    try {
      part.node = node.type->make(node.params.get(), resources);
    } catch (const UserError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (has_errors(problems)) throw UserError(problems);
  return workload;
}

}  // namespace sluice::engine
