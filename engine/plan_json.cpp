#include "base/json.h"
#include "engine/plan_text.h"

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

const char* kind_text(NodeKind kind) {
  return kind == NodeKind::kSource ? "source" : kind == NodeKind::kRollout ? "rollout" : "ordinary";
}

Json node_json(const Plan& plan, const PlanNode& node) {
  Json models = Json::array();
  for (const ModelNeed& need : node.needs.models) models.push_back({{"model", need.model}, {"use", name_of(need.use)}});
  Json json{{"name", node.name},
            {"type", node.type->info.type},
            {"kind", kind_text(node.type->kind)},
            {"executor", node.executor},
            {"inputs", node_names(plan, node.inputs)},
            {"reads", column_names(plan, node.reads)},
            {"writes", column_names(plan, node.writes)},
            {"frees", column_names(plan, node.frees)},
            {"models", models},
            {"scope", node.needs.scope == Scope::kIteration ? "iteration" : "micro_batch"},
            {"worst_tokens", node.worst_tokens}};
  if (node.needs.scope == Scope::kIteration) json["scope_reason"] = node.needs.scope_reason;
  return json;
}

Json model_json(const PlanModel& model) {
  return {{"name", model.name},
          {"head", model.facts.head},
          {"parameters", model.facts.parameters},
          {"max_positions", model.facts.max_positions},
          {"updated", model.usage.updated},
          {"kept_versions", model.usage.kept_versions}};
}

Json column_json(const Plan& plan, const PlanColumn& column) {
  return {{"name", column.spec.name},
          {"dtype", name_of(column.spec.dtype)},
          {"extent", name_of(column.spec.extent)},
          {"writer", plan.nodes[static_cast<size_t>(column.writer)].name},
          {"readers", node_names(plan, column.readers)}};
}

Json edge_json(const Plan& plan, const PlanEdge& edge) {
  return {{"from", plan.nodes[static_cast<size_t>(edge.from)].name},
          {"to", plan.nodes[static_cast<size_t>(edge.to)].name},
          {"columns", column_names(plan, edge.columns)}};
}

template <class T, class F>
Json array_of(const std::vector<T>& items, F json_of) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(json_of(item));
  return array;
}

}  // namespace

std::string plan_json(const Plan& plan) {
  Json json;
  json["pipeline"] = {{"name", plan.pipeline.name}, {"iterations", plan.pipeline.iterations}, {"seed", plan.pipeline.seed}};
  json["schedule"] = {{"policy_lag", plan.schedule.policy_lag}};
  json["nodes"] = array_of(plan.nodes, [&](const PlanNode& node) { return node_json(plan, node); });
  json["executors"] = array_of(plan.executors, [](const PlanExecutor& e) {
    return Json{{"name", e.name}, {"threads", e.threads}};
  });
  json["edges"] = array_of(plan.edges, [&](const PlanEdge& edge) { return edge_json(plan, edge); });
  json["columns"] = array_of(plan.columns, [&](const PlanColumn& column) { return column_json(plan, column); });
  json["models"] = array_of(plan.models, model_json);
  json["predicted"] = {{"weights_bytes", plan.memory.weights_bytes},     {"gradient_bytes", plan.memory.gradient_bytes},
                       {"optimizer_bytes", plan.memory.optimizer_bytes}, {"kv_bytes", plan.memory.kv_bytes},
                       {"column_bytes", plan.memory.column_bytes},       {"total_bytes", plan.memory.total_bytes()}};
  json["capacity"] = {{"tokens_in_flight", plan.budget.tokens_in_flight}, {"micro_batch_tokens", plan.budget.micro_batch_tokens},
                      {"group_tokens", plan.capacity.group_tokens},       {"iteration_tokens", plan.capacity.iteration_tokens},
                      {"tokens_needed", plan.capacity.tokens_needed},     {"needed_by", plan.capacity.needed_by}};
  return json.dump(2) + "\n";
}

}  // namespace sluice::engine
