#include "tests/engine/simulation_world.h"

#include "base/error.h"
#include "engine/check/check.h"
#include "tests/engine/tally_nodes.h"

namespace sluice::engine::testing {
namespace {

Array drawn() { return {{.data = std::string("drawn"), .where = {}, .base = {}}}; }

}  // namespace

ToyPlan toy_plan(const PipelineBuilder& builder, int ranks) {
  ToyPlan made{.registry = std::make_unique<Registry>(), .plan = {}};
  toy::register_toys(*made.registry);
  toy::register_tallies(*made.registry);
  CheckResult checked = check(builder.build(), *made.registry, ranks);
  if (!checked.plan) throw UserError(checked.problems);
  made.plan = std::move(*checked.plan);
  return made;
}

PipelineBuilder toy_pipeline(int64_t iterations, int64_t groups, int64_t budget, const std::string& on, bool trained) {
  PipelineBuilder builder("toys", iterations);
  builder.budget(budget, 4).set("runtime", "cores", int64_t{2});
  PipelineBuilder::Params rollout{{"worst_sample_tokens", int64_t{4}}};
  if (trained) rollout.emplace_back("model", std::string("policy")), builder.model("policy", {});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", groups}});
  builder.node("rollout", "toy_rollout", {"source"}, rollout, on);
  return builder;
}

void add_mix(PipelineBuilder& builder, const std::string& name, const std::string& input, const std::string& on, bool barrier) {
  builder.node(name, "toy_mix", {input}, {{"reads", drawn()}, {"writes", name}, {"barrier", barrier}}, on);
}

void add_training(PipelineBuilder& builder, const std::string& input) {
  builder.node("train", "toy_train", {input}, {{"model", std::string("policy")}, {"reads", std::string("drawn")}});
  builder.node("publish", "toy_publish", {"train"}, {{"model", std::string("policy")}});
}

Costs costs_with_lengths(int64_t prompt, int64_t response) {
  Costs costs;
  Lengths& lengths = costs.lengths.emplace_back();
  lengths.prompt.add(prompt);
  lengths.response.add(response);
  return costs;
}

Costs on_the_cores_of(const Plan& plan, Costs costs) {
  for (const PlanNode& node : plan.nodes) {
    const auto cost = costs.nodes.find(node.name);
    if (cost != costs.nodes.end()) cost->second.threads = plan.executor(node.executor).threads;
  }
  return costs;
}

}  // namespace sluice::engine::testing
