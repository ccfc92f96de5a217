#include "engine/schedule/state/workload.h"

#include <algorithm>

#include "base/error.h"
#include "engine/memory/memory_bound.h"
#include "engine/plan/rank_groups.h"
#include "engine/schedule/state/absent_nodes.h"

namespace sluice::engine {
namespace {

// Ranks that hold a model together have it in common where all of them have live weights of it. Those that sample from what
// others train have only what they sample from in common.
CommonMemory* common_memory_for(const Plan& plan, const PlanModel& model, const LinkedRanks& ranks, const Workload& workload) {
  const int rank = ranks.numbers.world().rank;
  if (plan.usage_on(rank, model)->received) return ranks.memory;
  if (!plan.shards_parameters() || !plan.holds_trained(rank)) return nullptr;
  if (!plan.usage_on(0, model)->has_live_weights(model.facts.reads_published)) return nullptr;
  return ranks.memory ? ranks.memory : workload.own_memory.get();
}

// What a rank that assists this one has as well.
bool is_shared(const Plan& plan, int rank, const PlanModel& model) {
  const std::vector<int> group = group_of(plan, rank);
  return group.size() > 1 && plan.usage_on(group.back(), model).has_value();
}

ModelUsage usage_of(const Plan& plan, const PlanModel& model, ModelUsage usage, const LinkedRanks& ranks, Workload& workload) {
  const int rank = ranks.numbers.world().rank;
  usage.publications = ranks.publications;
  usage.world = world_of(plan, ranks.numbers);
  if (ranks.passes != nullptr && plan.holds_trained(rank)) usage.holders = trainers_of(plan, rank);
  const bool has_peers = usage.forwarding != Forwarding::kNone;
  if (ranks.passes != nullptr && (has_peers || is_shared(plan, rank, model))) usage.passes = ranks.passes;
  if (usage.updated && model.facts.trainable && plan.training_ranks() > 1) usage.gradients = ranks.numbers.gradients(model.name);
  usage.trained_alone = std::ranges::count_if(plan.models, [](const PlanModel& other) {
                          return other.usage.updated && other.facts.trainable;
                        }) == 1;
  usage.shard_optimizer = plan.shards_optimizer();
  usage.common = common_memory_for(plan, model, ranks, workload);
  if (!model.facts.made_from().empty()) usage.base = workload.models[model.facts.made_from()];
  return usage;
}

// Of which model, where what is wrong is told of its folder alone.
Problem named(Problem problem, const std::string& model) {
  const std::string name = "model '" + model + "'";
  if (!problem.where.known() && problem.message.find(name) == std::string::npos) problem.message = name + ": " + problem.message;
  return problem;
}

void load_those(const Plan& plan, const LinkedRanks& ranks, bool made_from_others, Workload& workload, Problems& problems) {
  for (const PlanModel& model : plan.models) {
    if (model.facts.made_from().empty() == made_from_others) continue;
    const std::optional<ModelUsage> usage = plan.usage_on(ranks.numbers.world().rank, model);
    if (!usage) continue;
    try {
      workload.models[model.name] = plan.model_type->load(model.params, usage_of(plan, model, *usage, ranks, workload));
    } catch (const UserError& error) {
      for (const Problem& problem : error.problems()) problems.push_back(named(problem, model.name));
    }
  }
}

NodeResources resources_of(const Plan& plan, const PlanNode& node, const Workload& workload, const RunFolder& run_folder) {
  const PlanPath& path = plan.paths[static_cast<size_t>(node.path)];
  NodeResources resources{.node = node.name, .seed = static_cast<uint64_t>(plan.pipeline.seed)};
  const bool makes = node.type->kind == NodeKind::kRollout;
  resources.tokens_in_flight = makes ? plan.making_tokens(path) : path.tokens_in_flight;
  resources.pass_tokens = plan.budget.pass_tokens.value;
  const bool on_demand = plan.takes_on_demand(node);
  resources.admission = on_demand ? Admission::kOnDemand : Admission::kWorstCase;
  resources.kv_bytes = predict_kv_bytes(plan, path, plan.making_tokens());
  if (!path.measures()) resources.update = plan.schedule.update;
  resources.update_kv = plan.schedule.update_kv;
  resources.run_folder = run_folder;
  resources.threads = plan.executor(node.executor).threads;
  resources.text_checks = plan.text_checks(node);
  resources.prompt_limit = plan.prompt_limit(node);
  for (const ModelNeed& need : node.needs.models) resources.models[need.model] = workload.models.at(need.model);
  return resources;
}

// What has no place gets that of the file of the node that it names, else of the node. A problem that several nodes have, such
// as that of their model's tokenizer, is told once.
void add_placed(const PlanNode& node, const Problems& found, Problems& problems) {
  for (Problem problem : found) {
    const bool is_placed = problem.where.known();
    if (!is_placed && std::ranges::find(problems, problem.message, &Problem::message) != problems.end()) continue;
    if (!is_placed) problem.where = node.place_of(problem.message);
    problems.push_back(std::move(problem));
  }
}

}  // namespace

World world_of(const Plan& plan, const Reductions& ranks) {
  World world = ranks.world();
  SLUICE_CHECK(world.size == plan.scheduling_ranks(), "a plan for " + std::to_string(plan.scheduling_ranks()) +
                                                          " ranks that schedule runs on " + std::to_string(world.size));
  world.slots = static_cast<int>(plan.slots());
  world.owning = plan.owners();
  return world;
}

// A model that another one is made from before that.
void load_models(const Plan& plan, const LinkedRanks& ranks, Workload& workload) {
  Problems problems;
  for (const bool made_from_others : {false, true}) {
    load_those(plan, ranks, made_from_others, workload, problems);
    if (has_errors(problems)) throw UserError(problems);
  }
}

Workload make_workload(const Plan& plan, const RunFolder& run_folder, const LinkedRanks& linked) {
  Reductions& ranks = linked.numbers;
  Workload workload;
  Problems problems;
  load_models(plan, linked, workload);

  for (int index = 0; index < std::ssize(plan.nodes); ++index) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(index)];
    Workload::Part& part = workload.parts.emplace_back();
    part.metrics = std::make_unique<MetricsRecorder>(node.needs.metrics, node.metrics_prefix);
    part.totals = std::make_unique<Totals>(node.needs.totals);
    if (!plan.has(ranks.world().rank, index)) {
      part.node = absent_node(plan, index);
      continue;
    }
    part.resources = std::make_unique<NodeResources>(resources_of(plan, node, workload, run_folder));
    part.resources->metrics = part.metrics.get();
    part.resources->totals = part.totals.get();
    part.resources->outside = workload.outside.get();
    if (plan.owners() > 1) part.resources->run_folder.gathered = part.files.get();
    part.resources->world = world_of(plan, ranks);
    try {
      part.node = node.type->make(node.params.get(), *part.resources);
    } catch (const UserError& error) {
      add_placed(node, error.problems(), problems);
    }
  }
  if (has_errors(problems)) throw UserError(problems);
  return workload;
}

}  // namespace sluice::engine
