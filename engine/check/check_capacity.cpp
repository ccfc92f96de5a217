#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/worst_case.h"
#include "engine/plan/saturating.h"

// Tokens: can the run stall? Fills a CapacityShape from the draft and says what the proof found.
namespace sluice::engine::checking {
namespace {

std::optional<Worst> worst_case(Draft& draft, DraftPath& path) {
  const DraftNode& source = draft.node(path.source);
  const DraftNode& maker = draft.node(path.maker());
  if (!source.bound || !maker.bound) return std::nullopt;
  // A rollout promises the least credit that it asks for, not the least that a sample becomes: it may end after one token.
  Worst worst{&path,
              &maker,
              divided_up(source.needs->groups_per_iteration, draft.plan.owners()),
              maker.needs->samples_per_group,
              maker.needs->worst_sample_tokens,
              path.rollout ? 1 : maker.needs->least_sample_tokens,
              std::max<int64_t>(0, maker.needs->side_samples)};
  worst.least = std::clamp<int64_t>(worst.least, 1, std::max<int64_t>(1, worst.tokens));
  if (worst.groups <= 0 || worst.samples <= 0 || worst.tokens <= 0) return std::nullopt;
  return worst;
}

// Without bounds nothing can be proven. The contract of a type is to give them; a source without samples has been reported
// already.
void report_unbounded(Draft& draft, const DraftPath& path) {
  const DraftNode& source = draft.node(path.source);
  const DraftNode& maker = draft.node(path.maker());
  if (!source.bound || !maker.bound || maker.needs->samples_per_group <= 0) return;
  const bool by_source = source.needs->groups_per_iteration <= 0;
  const DraftNode& node = by_source ? source : maker;
  draft.error("contract-unbounded", place_of(node),
              "type " + sluice::quoted(node.type->info.type) + " gives no bound for " +
                  (by_source ? "the groups of an iteration" : "the tokens of a sample"),
              {}, std::string("its contract must set ") + (by_source ? "groups_per_iteration" : "worst_sample_tokens"));
}

// The longest sample that a node can have of a model; 0: any.
int64_t positions_of(const ModelFacts& facts, ModelUse use) {
  return use == ModelUse::kSamples && facts.max_sampled_positions > 0 ? facts.max_sampled_positions : facts.max_positions;
}

// A node may compute longer samples than its path makes: the same with more in their prompts. Then its contract says how long.
bool lengthens(const DraftNode& node, const Worst& worst) {
  return node.type != nullptr && node.type->kind == NodeKind::kOrdinary && node.needs &&
         node.needs->worst_sample_tokens > worst.tokens;
}

const DraftNode& who_bounds(const DraftNode& node, const Worst& worst) { return lengthens(node, worst) ? node : *worst.maker; }

int64_t tokens_of(const DraftNode& node, const Worst& worst) { return who_bounds(node, worst).needs->worst_sample_tokens; }

std::string whose_sample(const DraftNode& node, const Worst& worst) {
  return lengthens(node, worst) ? "a sample with the prompt that '" + node.name() + "' writes"
                                : "prompt and response of '" + worst.maker->name() + "' together";
}

void check_positions(Draft& draft, const Worst& worst) {
  std::vector<std::string> reported;
  for (const int index : worst.path->members) {
    const DraftNode& node = draft.node(index);
    if (!node.needs) continue;
    for (const ModelNeed& need : node.needs->models) {
      const int found = draft.find_model(need.model);
      if (found < 0 || need.use == ModelUse::kPublishes) continue;
      const ModelFacts& facts = draft.models[static_cast<size_t>(found)].facts;
      const int64_t limit = positions_of(facts, need.use), tokens = tokens_of(node, worst);
      if (limit <= 0 || tokens <= limit || std::find(reported.begin(), reported.end(), need.model) != reported.end()) continue;
      reported.push_back(need.model);
      draft.error(
          "sample-too-long", place_of(node, need.param),
          "samples of up to " + std::to_string(tokens) + " tokens do not fit model '" + need.model + "', which takes " +
              std::to_string(limit),
          limit < facts.max_positions ? facts.sampling_limit : whose_sample(node, worst),
          "shorten them by " + std::to_string(tokens - limit) + " tokens in [nodes." + who_bounds(node, worst).name() + "]");
    }
  }
}

void check_micro_batch(Draft& draft, const Worst& worst) {
  const int64_t size = draft.plan.budget.micro_batch_tokens.value;
  if (size >= worst.group_tokens()) return;
  const int64_t samples = size / worst.tokens - worst.side;
  draft.error("group-exceeds-micro-batch", place_of(draft.spec.budget, "micro_batch_tokens", draft.spec.where),
              "a micro-batch of " + std::to_string(size) + " tokens cannot hold one group",
              "a group of '" + worst.maker->name() + "' is at worst " + worst.group_text() + " = " +
                  std::to_string(worst.group_tokens()) + " tokens",
              "micro_batch_tokens >= " + std::to_string(worst.group_tokens()) +
                  (samples > 0 ? ", or at most " + plural(samples, "sample") + " a group" : ", or shorter samples"));
}

// A pass is cut between samples, so the longest one has to fit. What is chosen by memory is never less.
void check_pass(Draft& draft, const Worst& worst) {
  const IntegerOrAuto& pass = draft.plan.budget.pass_tokens;
  const auto is_too_long = [&](int index) {
    const DraftNode& node = draft.node(index);
    return node.needs && computes_in_passes(*node.type, *node.needs) && pass.value < tokens_of(node, worst);
  };
  const auto found = std::ranges::find_if(worst.path->members, is_too_long);
  if (pass.automatic || found == worst.path->members.end()) return;
  const DraftNode& node = draft.node(*found);
  const int64_t tokens = tokens_of(node, worst);
  const std::string has = lengthens(node, worst) ? "a sample with the prompt that '" + node.name() + "' writes"
                                                 : "a sample of '" + worst.maker->name() + "'";
  draft.error("sample-exceeds-pass", place_of(draft.spec.budget, "pass_tokens", draft.spec.where),
              "a pass of " + std::to_string(pass.value) + " tokens cannot hold one sample",
              has + " has up to " + std::to_string(tokens) + " tokens, and '" + node.name() + "' computes whole samples",
              "pass_tokens >= " + std::to_string(tokens) + ", or samples that are " + plural(tokens - pass.value, "token") +
                  " shorter in [nodes." + who_bounds(node, worst).name() + "]");
}

// Only a rollout that takes credit as its samples grow can be admitted with less than the worst case. On the other paths groups
// are then admitted with all.
void check_admission(Draft& draft, const std::vector<Worst>& all) {
  if (draft.plan.budget.admission != Admission::kOnDemand || all.empty() || std::ranges::any_of(all, grows_on_demand)) return;
  const DraftNode& maker = *all.front().maker;
  draft.error("setting-without-effect", place_of(draft.spec.budget, "admission", draft.spec.where),
              std::string("admission = \"on_demand\" has no effect: ") +
                  (all.front().path->rollout ? "type " + sluice::quoted(maker.type->info.type) + " takes its worst case at once"
                                             : "the groups of '" + maker.name() + "' are complete when they are admitted"),
              {}, "remove it");
}

bool is_barrier(const DraftNode& node) { return node.bound && node.needs->scope == Scope::kIteration; }

// Whether all that reads columns on the path is done with an iteration when a model that the path samples from is published.
bool releases_all(const Draft& draft, const DraftPath& path, const DraftModel& model) {
  if (model.updater < 0 || model.publisher < 0 || !path.rollout) return false;
  const auto& needs = draft.node(*path.rollout).needs->models;
  const auto samples = [&](const ModelNeed& n) { return n.use == ModelUse::kSamples && n.model == model.spec->name.text; };
  if (std::ranges::none_of(needs, samples)) return false;
  return std::ranges::all_of(path.members, [&](int index) {
    const DraftNode& node = draft.node(index);
    return !node.needs || node.needs->reads.empty() || index == model.publisher || draft.before(index, model.publisher) ||
           node.type->kind != NodeKind::kOrdinary;
  });
}

// Iterations from `first` to `last` in which a path that measures takes part.
int64_t due_between(const SourceSettings& settings, int64_t first, int64_t last, int64_t iterations) {
  const int64_t every = settings.every_iterations.value_or(iterations);
  int64_t due = (last + 1) / every - first / every;
  if (first == 0 && settings.before_training && every > 1 && iterations > 1) ++due;
  if (last + 1 == iterations && iterations % every != 0) ++due;
  return due;
}

// The most of them among `open` iterations one after the other: from the first, from the first regular one, or up to the last.
int64_t most_due(const SourceSettings& settings, int64_t open, int64_t iterations) {
  const int64_t latest = std::max<int64_t>(0, iterations - open), regular = settings.every_iterations.value_or(iterations) - 1;
  int64_t most = 0;
  for (const int64_t first : {int64_t{0}, std::min(regular, latest), latest})
    most = std::max(most, due_between(settings, first, std::min(first + open, iterations) - 1, iterations));
  return most;
}

// Iterations of which tokens of a path can be in flight at once. Iteration i begins when no more than policy_lag + 2 are open;
// and, where it waits for version i - policy_lag, when all before the publisher are done with iteration i - policy_lag - 1. A
// path that measures takes part in some of them alone.
int64_t open_iterations(const Draft& draft, const DraftPath& path) {
  const int64_t lag = draft.plan.schedule.policy_lag, iterations = draft.plan.pipeline.iterations;
  const SourceSettings& settings = draft.node(path.source).source;
  if (settings.measures()) return most_due(settings, lag + 2, iterations);
  const bool waits = std::ranges::any_of(draft.models, [&](const DraftModel& model) { return releases_all(draft, path, model); });
  return std::min(iterations, lag + (waits ? 1 : 2));
}

// A path with a share of its own packs no more than that, unless a group is more.
int64_t micro_batch_of(const Draft& draft, const Worst& worst) {
  const int64_t size = draft.plan.budget.micro_batch_tokens.value;
  if (!draft.node(worst.path->source).source.tokens_in_flight) return size;
  return std::max(worst.group_tokens(), std::min(size, worst.path->tokens_in_flight));
}

CapacityShape shape_of(const Draft& draft, const Worst& worst) {
  CapacityShape shape{.worst_group = worst.group_tokens(),
                      .least_group = saturating_product(worst.samples, worst.least),
                      .groups = worst.groups,
                      .micro_batch = micro_batch_of(draft, worst),
                      .slots = std::max<int64_t>(1, draft.plan.slots_of_rank()),
                      .open_iterations = open_iterations(draft, *worst.path)};
  std::vector<int> position(draft.nodes.size());
  for (const int index : worst.path->members) {
    const DraftNode& node = draft.node(index);
    position[static_cast<size_t>(index)] = static_cast<int>(shape.nodes.size());
    CapacityNode& to = shape.nodes.emplace_back();
    for (const int input : node.inputs) to.inputs.push_back(position[static_cast<size_t>(input)]);
    to.reads = node.needs && node.type->kind == NodeKind::kOrdinary && !node.needs->reads.empty();
    to.barrier = is_barrier(node);
  }
  if (worst.path->refill) {
    const NodeNeeds& needs = *draft.node(*worst.path->refill).needs;
    shape.refill = position[static_cast<size_t>(*worst.path->refill)];
    shape.most_draws = needs.most_draws;
    shape.oversample = std::max(1.0, needs.oversample);
  }
  return shape;
}

void fill_capacity(Draft& draft, const Worst& worst, const CapacityShape& shape) {
  PlanCapacity& capacity = worst.path->capacity;
  const CapacityProof& proof = worst.path->proof;
  worst.path->micro_batch_tokens = shape.micro_batch;
  capacity.group_tokens = shape.worst_group;
  capacity.drawn_groups = proof.drawn_groups;
  capacity.iteration_tokens = proof.iteration_tokens;
  capacity.micro_batch_tokens = proof.micro_batch_tokens;
  capacity.in_flight_tokens = std::min(worst.path->tokens_in_flight, proof.most_in_flight);
  capacity.open_iterations = shape.open_iterations;
  capacity.tokens_needed = proof.tokens_needed;
  capacity.needed_by =
      proof.needed_by ? draft.node(worst.path->members[static_cast<size_t>(*proof.needed_by)]).name() : worst.maker->name();
}

std::string quoted_name(const Draft& draft, const DraftPath& path) { return "'" + draft.node(path.source).name() + "'"; }

// Groups of the one could keep those of the other out. The smallest share is named: micro-batches of one group.
void report_undivided(Draft& draft, const Worst& first, const Worst& second) {
  const bool first_measures = draft.measures(*first.maker) && !draft.measures(*second.maker);
  const Worst& to_say_it = first_measures ? first : second;
  CapacityShape smallest = shape_of(draft, to_say_it);
  smallest.micro_batch = to_say_it.group_tokens();
  draft.error("budget-not-divided", place_of(draft.node(to_say_it.path->source)),
              "sources " + quoted_name(draft, *first.path) + " and " + quoted_name(draft, *second.path) +
                  " both want what is left of the budget",
              "groups of one could keep those of the other out",
              "tokens_in_flight = " + std::to_string(prove(smallest).tokens_needed) + " or more in [nodes." +
                  draft.node(to_say_it.path->source).name() + "]");
}

// Each source but one says how much of the budget is its own; the one that does not has the rest.
bool divide_budget(Draft& draft, const std::vector<Worst>& paths) {
  const int64_t all = draft.plan.training_tokens();
  int64_t rest = all;
  const Worst* rest_goes_to = nullptr;
  for (const Worst& worst : paths) {
    DraftPath& path = *worst.path;
    const DraftNode& source = draft.node(path.source);
    path.tokens_in_flight = source.source.tokens_in_flight.value_or(0);
    rest -= path.tokens_in_flight;
    if (source.source.tokens_in_flight) continue;
    if (rest_goes_to != nullptr) {
      report_undivided(draft, *rest_goes_to, worst);
      return false;
    }
    rest_goes_to = &worst;
  }
  DraftPath* const without = rest_goes_to == nullptr ? nullptr : rest_goes_to->path;
  if (without != nullptr) without->tokens_in_flight = rest;
  if (rest > 0 || (rest == 0 && without == nullptr)) return true;
  draft.error("budget-not-divided", place_of_tokens(draft, training_role(draft)),
              "the sources' own shares are " + std::to_string(all - rest) + " tokens, the budget has " + std::to_string(all),
              without == nullptr ? std::string() : "nothing is left for source " + quoted_name(draft, *without),
              std::string(kTokensInFlight) + " > " + std::to_string(all - rest));
  return false;
}

void check_path(Draft& draft, const Worst& worst) {
  DraftPath& path = *worst.path;
  check_micro_batch(draft, worst);
  check_pass(draft, worst);
  const CapacityShape shape = shape_of(draft, worst);
  path.proof = prove(shape);
  fill_capacity(draft, worst, shape);
  if (path.tokens_in_flight < path.proof.tokens_needed) report_stall(draft, worst, shape);
}

}  // namespace

void check_capacity(Draft& draft) {
  std::vector<Worst> all;
  for (DraftPath& path : draft.paths) {
    const auto worst = worst_case(draft, path);
    if (worst)
      all.push_back(*worst);
    else
      report_unbounded(draft, path);
  }
  for (const Worst& worst : all) check_positions(draft, worst);
  if (!draft.knows_ranks_and_budget() || all.size() < draft.paths.size() || !divide_budget(draft, all)) return;
  IntegerOrAuto& micro_batch = draft.plan.budget.micro_batch_tokens;
  for (const Worst& worst : all) {
    if (micro_batch.automatic) micro_batch.value = std::max({micro_batch.value, draft.chosen_micro_batch, worst.group_tokens()});
  }
  check_admission(draft, all);
  check_making(draft, all);
  for (const Worst& worst : all) check_path(draft, worst);
}

}  // namespace sluice::engine::checking
