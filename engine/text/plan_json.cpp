#include "base/json/json.h"
#include "engine/checkpoint/checkpoint_room.h"
#include "engine/memory/role_traffic.h"
#include "engine/observe/engine_metrics.h"
#include "engine/plan/cluster_work.h"
#include "engine/text/plan_text.h"
#include "engine/text/ranks_text.h"

// plan_json of plan_text.h.
namespace sluice::engine {
namespace {

Json column_names(const Plan& plan, const std::vector<int>& columns) {
  Json names = Json::array();
  for (const int column : columns) names.push_back(plan.columns[static_cast<size_t>(column)].spec.name);
  return names;
}

Json node_names(const Plan& plan, const std::vector<int>& nodes) {
  Json names = Json::array();
  for (const int node : nodes) names.push_back(plan.nodes[static_cast<size_t>(node)].name);
  return names;
}

Json node_json(const Plan& plan, size_t order) {
  const PlanNode& node = plan.nodes[order];
  Json models = Json::array();
  for (const ModelNeed& need : node.needs.models) models.push_back({{"model", need.model}, {"use", name_of(need.use)}});
  Json json{{"name", node.name},
            {"order", order},
            {"type", node.type->info.type},
            {"kind", name_of(node.type->kind)},
            {"executor", node.executor},
            {"inputs", node_names(plan, node.inputs)},
            {"joins", node.joins()},
            {"barrier", node.is_barrier()},
            {"reads", column_names(plan, node.reads)},
            {"writes", column_names(plan, node.writes)},
            {"frees", column_names(plan, node.frees)},
            {"models", models},
            {"metrics", metrics::names_of(node)},
            {"scope", node.is_barrier() ? "iteration" : "micro_batch"},
            {"worst_tokens", node.worst_tokens}};
  if (node.is_barrier()) json["scope_reason"] = node.needs.scope_reason;
  if (node.stream >= 0) json["behind_filter"] = plan.nodes[static_cast<size_t>(node.stream)].name;
  if (node.needs.drops_groups) json["filter"] = {{"most_draws", node.needs.most_draws}, {"oversample", node.needs.oversample}};
  return json;
}

Json model_json(const PlanModel& model) {
  Json json{{"name", model.name},
            {"head", model.facts.head},
            {"parameters", model.facts.parameters},
            {"max_positions", model.facts.max_positions},
            {"updated", model.usage.updated},
            {"recompute", model.usage.recompute},
            {"readable_versions", model.usage.versions.readable}};
  if (model.facts.learning_rate && model.facts.learning_rate->changes())
    json["learning_rate"] = model.facts.learning_rate->text();
  for (const WeightGroup& group : model.facts.groups)
    json["groups"].push_back({{"group", group.text}, {"parameters", group.parameters}});
  return json;
}

Json spec_json(const ColumnSpec& spec) {
  return {{"name", spec.name},
          {"dtype", name_of(spec.dtype)},
          {"extent", name_of(spec.extent)},
          {"entry_bytes", entry_bytes(spec.dtype)}};
}

Json column_json(const Plan& plan, const PlanColumn& column) {
  return {{"name", column.spec.name},
          {"dtype", name_of(column.spec.dtype)},
          {"extent", name_of(column.spec.extent)},
          {"writer", plan.nodes[static_cast<size_t>(column.writer)].name},
          {"readers", node_names(plan, column.readers)},
          {"freed_by", node_names(plan, plan.last_readers(column))}};
}

// Bytes of the columns with one entry a token or an action, of those with one a sample, and of those with one a group; of strings
// only the entry itself.
Json edge_json(const Plan& plan, const PlanEdge& edge) {
  Json schema = Json::array();
  int64_t a_token = 0, a_sample = 0, a_group = 0;
  for (const int column : edge.columns) {
    const ColumnSpec& spec = plan.columns[static_cast<size_t>(column)].spec;
    schema.push_back(spec_json(spec));
    (spec.extent == Extent::kGroup ? a_group : spec.extent == Extent::kSample ? a_sample : a_token) += entry_bytes(spec.dtype);
  }
  Json json{{"from", plan.nodes[static_cast<size_t>(edge.from)].name},
            {"to", plan.nodes[static_cast<size_t>(edge.to)].name},
            {"columns", column_names(plan, edge.columns)},
            {"schema", schema},
            {"bytes_per_token", a_token},
            {"bytes_per_sample", a_sample},
            {"bytes_per_group", a_group}};
  if (!plan.all_roles().empty()) json["remote"] = is_remote(plan, edge);
  return json;
}

Json predicted_json(const PlanMemory& memory) {
  return {{"weights_bytes", memory.weights_bytes},
          {"gradient_bytes", memory.gradient_bytes},
          {"optimizer_bytes", memory.optimizer_bytes},
          {"checkpoint_copy_bytes", memory.copy_bytes},
          {"kv_bytes", memory.kv_bytes},
          {"column_bytes", memory.column_bytes},
          {"activation_bytes", memory.activation_bytes},
          {"slack_bytes", memory.slack_bytes},
          {"total_bytes", memory.total_bytes()},
          {"machine_bytes", memory.machine_bytes}};
}

// Worst cases of a path.
Json worst_json(const PlanCapacity& capacity) {
  return {{"group_tokens", capacity.group_tokens},         {"drawn_groups", capacity.drawn_groups},
          {"iteration_tokens", capacity.iteration_tokens}, {"largest_micro_batch", capacity.micro_batch_tokens},
          {"most_in_flight", capacity.in_flight_tokens},   {"open_iterations", capacity.open_iterations},
          {"tokens_needed", capacity.tokens_needed},       {"needed_by", capacity.needed_by}};
}

// Of the main path; the budget is that of all.
Json capacity_json(const Plan& plan) {
  Json json = worst_json(plan.main_path().capacity);
  json["tokens_in_flight"] = plan.budget.tokens_in_flight;
  json["micro_batch_tokens"] = plan.budget.micro_batch_tokens.value;
  json["pass_tokens"] = plan.budget.pass_tokens.value;
  return json;
}

Json path_json(const Plan& plan, const PlanPath& path) {
  const auto name = [&](int node) { return plan.nodes[static_cast<size_t>(node)].name; };
  Json json = worst_json(path.capacity);
  json["source"] = name(path.source);
  json["tokens_in_flight"] = path.tokens_in_flight;
  json["shares_making"] = plan.shares_making(path);
  json["micro_batch_tokens"] = path.micro_batch_tokens;
  json["measures"] = path.measures();
  if (path.rollout) json["rollout"] = name(*path.rollout);
  if (path.settings.every_iterations) json["every_iterations"] = *path.settings.every_iterations;
  if (path.measures()) json["before_training"] = path.settings.before_training;
  return json;
}

template <class T, class F>
Json array_of(const std::vector<T>& items, F json_of) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(json_of(item));
  return array;
}

Json devices_json(const std::vector<PlanDevice>& devices) {
  return array_of(devices, [](const PlanDevice& device) {
    return Json{{"name", device.name}, {"predicted", predicted_json(device.memory)}};
  });
}

// The first one trains, the one after it samples; what is after these computes passes of frozen models.
Json role_json(const Plan& plan, const PlanRole& role) {
  Json json{{"name", role.name},
            {"trains", plan.trains(role.first_rank)},
            {"samples", plan.samples(role.first_rank)},
            {"forwards", plan.forwards(role.first_rank)},
            {"first_rank", role.first_rank},
            {"ranks", role.ranks},
            {"tokens_in_flight", role.tokens_in_flight},
            {"elastic", role.elastic},
            {"predicted", predicted_json(role.memory)}};
  if (!role.devices.empty()) json["devices"] = devices_json(role.devices);
  if (plan.forwards(role.first_rank)) {
    json.erase("tokens_in_flight");
    json["nodes"] = Json::array();
    for (const PlanNode& node : plan.nodes)
      if (role.has_executor(node.executor)) json["nodes"].push_back(node.name);
  }
  if (!plan.has_roles() || !plan.samples(role.first_rank)) return json;
  json["groups_at_once"] = Json::array();
  for (const PlanPath& path : plan.paths) {
    if (path.rollout)
      json["groups_at_once"].push_back(
          {{"source", plan.nodes[static_cast<size_t>(path.source)].name}, {"groups", groups_at_once(plan, path)}});
  }
  return json;
}

// What goes from role to role.
Json traffic_json(const Plan& plan) {
  const RoleTraffic traffic = role_traffic(plan);
  Json weights = Json::array(), groups = Json::array();
  for (const RoleTraffic::Version& version : traffic.versions)
    weights.push_back({{"model", version.model}, {"bytes_of_version", version.bytes}, {"receivers", plan.receivers().size()}});
  for (const RoleTraffic::Groups& of_path : traffic.groups) {
    const PlanPath& path = plan.paths[static_cast<size_t>(of_path.path)];
    groups.push_back({{"source", plan.nodes[static_cast<size_t>(path.source)].name},
                      {"groups", of_path.groups},
                      {"prompt_bytes", of_path.prompt_bytes},
                      {"column_bytes", of_path.column_bytes}});
  }
  Json passes = Json::array();
  for (const RoleTraffic::Passes& of_node : traffic.passes) {
    passes.push_back({{"node", plan.nodes[static_cast<size_t>(of_node.node)].name},
                      {"asked_bytes", of_node.asked_bytes},
                      {"answer_bytes", of_node.answer_bytes}});
  }
  return {{"weights", weights}, {"groups", groups}, {"passes", passes}};
}

Json cluster_json(const Plan& plan) {
  const ClusterWork work = cluster_work(plan);
  Json json{{"ranks", plan.ranks},
            {"slots", plan.slots()},
            {"sequence_parallel", plan.pass_ranks()},
            {"ring", plan.ring()},
            {"tensor_parallel", plan.sampling_ranks()},
            {"expert_parallel", plan.expert_ranks()},
            {"slots_of_rank", work.slots},
            {"groups_of_slot", work.groups},
            {"micro_batches_of_slot", work.micro_batches},
            {"gradient_bytes_sent", work.gradient_bytes}};
  const std::vector<const PlanRole*> roles = plan.all_roles();
  if (roles.empty()) return json;
  json["roles"] = Json::array();
  for (const PlanRole* const role : roles) json["roles"].push_back(role_json(plan, *role));
  json["between_roles"] = traffic_json(plan);
  return json;
}

Json checkpoints_json(const Plan& plan) {
  const CheckpointRoom room = checkpoint_room(plan);
  return {{"bytes_each", room.bytes},
          {"at_a_time", room.at_a_time},
          {"copy", plan.checkpoint_copy == CheckpointCopy::kMemory ? "memory" : "none"},
          {"copy_chosen", !plan.checkpoint.copy.has_value()}};
}

}  // namespace

std::string plan_json(const Plan& plan) {
  Json json;
  json["pipeline"] = {{"name", plan.pipeline.name}, {"iterations", plan.pipeline.iterations}, {"seed", plan.pipeline.seed}};
  if (plan.pipeline.preset) json["pipeline"]["preset"] = *plan.pipeline.preset;
  json["schedule"] = {{"policy_lag", plan.schedule.policy_lag}};
  json["nodes"] = Json::array();
  for (size_t i = 0; i < plan.nodes.size(); ++i) json["nodes"].push_back(node_json(plan, i));
  json["executors"] = array_of(plan.executors, [](const PlanExecutor& e) {
    return Json{{"name", e.name}, {"threads", e.threads}};
  });
  json["edges"] = array_of(plan.edges, [&](const PlanEdge& edge) { return edge_json(plan, edge); });
  json["columns"] = array_of(plan.columns, [&](const PlanColumn& column) { return column_json(plan, column); });
  json["models"] = array_of(plan.models, model_json);
  json["predicted"] = predicted_json(plan.memory);
  if (!plan.devices.empty()) json["devices"] = devices_json(plan.devices);
  json["checkpoints"] = checkpoints_json(plan);
  json["capacity"] = capacity_json(plan);
  json["cluster"] = cluster_json(plan);
  json["paths"] = array_of(plan.paths, [&](const PlanPath& path) { return path_json(plan, path); });
  return json.dump(2) + "\n";
}

}  // namespace sluice::engine
