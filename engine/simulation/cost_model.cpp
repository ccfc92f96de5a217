#include "engine/simulation/cost_model.h"

#include <algorithm>
#include <utility>

#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_schedule.h"
#include "engine/simulation/length_draws.h"
#include "engine/simulation/simulated_time.h"

namespace sluice::engine {
namespace {

int64_t nanoseconds(double us) { return simulated_ns(us * 1e3); }

void scale(NodeCosts& costs, double factor) {
  for (double NodeCosts::*cost :
       {&NodeCosts::per_batch_us, &NodeCosts::per_token_us, &NodeCosts::per_iteration_us, &NodeCosts::per_step_us,
        &NodeCosts::per_sampled_token_us, &NodeCosts::per_prompt_token_us, &NodeCosts::per_group_us}) {
    costs.*cost *= factor;
  }
}

// What is guessed for nothing takes a row of the step as what is sampled does, and who guesses its part of a step for each pass.
double of_guesses_us(const NodeCosts& costs, const Guesses& guesses, const StepWork& step) {
  if (!guesses.apart) return 0;
  const double in_vain = std::max(0.0, step.drafted_tokens - static_cast<double>(step.kept_drafts));
  return costs.per_sampled_token_us * in_vain +
         guesses.draft_share * (costs.per_sampled_token_us * step.drafted_tokens + costs.per_step_us * step.draft_passes);
}

// Of models that a node samples from, the first: another one only guesses.
double operations_of_token(const Plan& plan, const PlanNode& node) {
  double operations = 0;
  bool samples = false;
  for (const ModelNeed& need : node.needs.models) {
    const PlanModel* const model = plan.find_model(need.model);
    if (model == nullptr || need.use == ModelUse::kPublishes || need.use == ModelUse::kAverages) continue;
    if (need.use == ModelUse::kSamples && std::exchange(samples, true)) continue;
    operations += (need.use == ModelUse::kUpdates ? 6.0 : 2.0) *
                  static_cast<double>(model->facts.parameters - model->facts.idle_parameters);
  }
  return operations;
}

}  // namespace

CostModel::CostModel(const Plan& plan, const Costs& costs, int rank)
    : plan_(plan), held_(plan.nodes.size()), endings_(plan.nodes.size()) {
  for (int node = 0; node < std::ssize(plan.nodes); ++node) {
    const PlanNode& of = plan.nodes[static_cast<size_t>(node)];
    costs_.push_back(found(of, costs));
    const auto guesses = costs.guesses.find(of.name);
    guesses_.push_back(guesses == costs.guesses.end() ? Guesses() : guesses->second);
    if (!plan.has(rank, node)) costs_.back() = {}, guesses_.back() = {};
  }
}

NodeCosts CostModel::found(const PlanNode& node, const Costs& costs) {
  const auto measured = costs.nodes.find(node.name);
  if (measured == costs.nodes.end()) {
    notes_.push_back("'" + node.name + "' was not measured: its work is taken to be free");
    return {};
  }
  NodeCosts scaled = measured->second;
  const int threads = plan_.threads_of(node);
  const PlanPath& path = plan_.paths[static_cast<size_t>(node.path)];
  const bool source_of_rollout = path.rollout && node.type->kind == NodeKind::kSource;  // its work is part of the rollout's
  if (threads != scaled.threads && !source_of_rollout) {
    notes_.push_back("'" + node.name + "' was measured on " + plural(scaled.threads, "core") + " and has " +
                     std::to_string(threads) + " here: its times are divided by " +
                     real_text(static_cast<double>(threads) / scaled.threads));
    scale(scaled, static_cast<double>(scaled.threads) / threads);
  }
  // Ranks of a role of its own share out what all that train ask for.
  if (const PlanRole* const role = plan_.forward_role_of(node)) scale(scaled, static_cast<double>(plan_.owners()) / role->ranks);
  return scaled;
}

int64_t CostModel::of_work_ns(const Work& work) {
  const auto node = static_cast<size_t>(work.node);
  const BatchState* const batch = work.packet.batch.get();
  const int64_t ending = endings_[node].iteration;
  if (ending >= 0 && (batch != nullptr || ending != work.packet.iteration.index)) return 0;  // it is put aside, and comes again
  if (batch == nullptr) return of_end_ns(node, work.packet.iteration.index);
  if (batch->layout.groups() == 0) return 0;  // a filter dropped all of it: it is only passed on
  const auto tokens = static_cast<int64_t>(batch->layout.tokens());
  if (plan_.nodes[node].needs.scope == Scope::kIteration) {
    ++held_[node].batches, held_[node].tokens += tokens;
    return 0;
  }
  return nanoseconds(costs_[node].per_batch_us + costs_[node].per_token_us * static_cast<double>(tokens));
}

int64_t CostModel::of_end_ns(size_t node, int64_t iteration) {
  const PlanPath& path = plan_.paths[static_cast<size_t>(plan_.nodes[node].path)];
  if (!path.is_due(iteration, plan_.pipeline.iterations)) return 0;
  if (adds_over_ranks(plan_, plan_.nodes[node])) return nanoseconds(of_part_us(node, iteration));
  const double us = of_held_us(node) + of_last_part_us(node, iteration);
  held_[node] = {};
  return nanoseconds(us);
}

double CostModel::of_held_us(size_t node) const {
  return costs_[node].per_batch_us * static_cast<double>(held_[node].batches) +
         costs_[node].per_token_us * static_cast<double>(held_[node].tokens);
}

double CostModel::of_last_part_us(size_t node, int64_t iteration) const {
  return costs_[node].per_iteration_us + (saved_by_count(plan_, iteration) ? costs_[node].per_checkpoint_us : 0);
}

// A barrier meets before each of its steps; every node meets before its end.
double CostModel::of_part_us(size_t node, int64_t iteration) {
  const PlanNode& plan = plan_.nodes[node];
  const int64_t steps = plan.is_barrier() ? plan.needs.steps : 0;
  Ending& ending = endings_[node];
  if (ending.iteration < 0) {
    ending = {.iteration = iteration, .met = 0};
    return 0;
  }
  if (++ending.met <= steps) return of_held_us(node) / static_cast<double>(steps);
  ending = {};
  held_[node] = {};
  return of_last_part_us(node, iteration);
}

int64_t CostModel::of_step_ns(int path, const StepWork& step) const {
  const PlanPath& plan = plan_.paths[static_cast<size_t>(path)];
  if (!plan.rollout) return nanoseconds(costs_[static_cast<size_t>(plan.source)].per_group_us * static_cast<double>(step.groups));
  if (step.sampled_tokens == 0 && step.prompt_tokens == 0) return 0;
  const NodeCosts& costs = costs_[static_cast<size_t>(*plan.rollout)];
  const Guesses& guesses = guesses_[static_cast<size_t>(*plan.rollout)];
  return nanoseconds(costs.per_step_us + costs.per_sampled_token_us * static_cast<double>(step.sampled_tokens) +
                     costs.per_prompt_token_us * static_cast<double>(step.prompt_tokens) + of_guesses_us(costs, guesses, step));
}

bool adds_over_ranks(const Plan& plan, const PlanNode& node) {
  const auto updates = [](const ModelNeed& need) { return need.use == ModelUse::kUpdates; };
  return plan.owners() > 1 && (!node.needs.totals.empty() || std::ranges::any_of(node.needs.models, updates));
}

Costs estimated_costs(const Plan& plan, double gflops) {
  Costs costs{.pipeline = plan.pipeline.name, .nodes = {}, .lengths = {}};
  for (const PlanNode& node : plan.nodes) {
    const int threads = plan.threads_of(node);
    const bool together = computes_in_passes(*node.type, node.needs) && plan.forward_role_of(node) == nullptr;
    const int ranks = together ? plan.pass_ranks() : 1;
    const double per_token_us = operations_of_token(plan, node) / (gflops * 1e3 * threads * ranks);
    NodeCosts& estimate = costs.nodes[node.name] = {.threads = threads};
    if (node.type->kind == NodeKind::kRollout)
      estimate.per_sampled_token_us = estimate.per_prompt_token_us = per_token_us;
    else
      estimate.per_token_us = per_token_us;
  }
  const SampleBounds bounds(plan, plan.main_path());
  const int64_t prompt = std::max<int64_t>(1, bounds.prompt() / 2);
  const int64_t longest = std::max<int64_t>(1, bounds.response(prompt));
  const int64_t parts = std::min<int64_t>(longest, 64);
  Lengths& lengths = costs.lengths.emplace_back();
  lengths.prompt.add(prompt);
  for (int64_t part = 1; part <= parts; ++part) lengths.response.add(longest * part / parts);
  return costs;
}

}  // namespace sluice::engine
