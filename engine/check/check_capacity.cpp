#include <algorithm>

#include "base/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/capacity.h"
#include "engine/plan/saturating.h"

// Tokens: can the run stall? Fills a CapacityShape from the draft and says what the proof found.
namespace sluice::engine::checking {
namespace {

struct Worst {
  DraftPath* path;
  const DraftNode* maker;  // the node that makes the samples
  int64_t groups;          // of the rank that has most
  int64_t samples;         // of a group
  int64_t tokens;          // of a sample
  int64_t least;           // tokens of a sample once it is finished
  int64_t side;            // samples beside those of a group

  int64_t group_tokens() const { return saturating_product(saturating_sum(samples, side), tokens); }
  std::string group_text() const {
    const std::string own = std::to_string(samples);
    return (side == 0 ? own : "(" + own + " + " + std::to_string(side) + ")") + " x " + std::to_string(tokens);
  }
};

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

bool grows_on_demand(const Worst& worst) { return worst.path->rollout && worst.maker->needs->on_demand_tokens > 0; }

// Only a rollout that takes credit as its samples grow can be admitted with less than the worst case. On the other paths groups are
// then admitted with all.
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

constexpr const char* kTokensInFlight = "tokens_in_flight";

const PlanRole* training_role(const Draft& draft) { return draft.plan.role_of(0); }

/// What to say of a budget that is too small.
class Stall {
 public:
  Stall(Draft& draft, const Worst& worst, const CapacityShape& shape)
      : draft_(draft), worst_(worst), path_(*worst.path), shape_(shape) {}

  void report() {
    if (path_.proof.needed_by)
      report_at_barrier();
    else
      report_at_packer();
  }

 private:
  int64_t budget() const { return path_.tokens_in_flight; }
  int64_t needed() const { return path_.proof.tokens_needed; }
  const DraftNode& node(int position) const { return draft_.node(path_.members[static_cast<size_t>(position)]); }

  // The key that gives the path its tokens, and how many it needs there.
  SourceSpan where() const {
    if (source().source.tokens_in_flight) return place_of(source(), kTokensInFlight);
    return place_of_tokens(draft_, training_role(draft_));
  }
  std::string enough() const {
    const int64_t others = source().source.tokens_in_flight ? 0 : draft_.plan.training_tokens() - budget();
    const PlanRole* const role = training_role(draft_);
    const bool is_of_role = role != nullptr && !source().source.tokens_in_flight && own_tokens(draft_, *role) != nullptr;
    return std::string(kTokensInFlight) + " >= " + std::to_string(needed() + others) +
           (is_of_role ? " in [cluster.roles." + role->name + "]" : "");
  }
  std::string tokens() const {
    const std::string text = std::to_string(budget()) + " tokens in flight";
    return draft_.paths.size() == 1 ? text : text + " of source '" + source().name() + "'";
  }
  const DraftNode& source() const { return draft_.node(path_.source); }

  void report_at_packer() {
    const bool smaller_batches = budget() >= shape_.worst_group;
    draft_.error("budget-stalls", where(), tokens() + " cannot fill one micro-batch: the run would stall",
                 "a micro-batch is handed on when it holds " + std::to_string(needed()) + " tokens at worst",
                 enough() + (smaller_batches ? ", or micro_batch_tokens <= " + std::to_string(budget()) : std::string()));
  }

  void report_at_barrier() {
    const DraftNode& barrier = node(*path_.proof.needed_by);
    const bool behind = path_.refill && draft_.before(*path_.refill, path_.members[static_cast<size_t>(*path_.proof.needed_by)]);
    const std::string reason = barrier.needs->scope_reason.empty() ? "" : " (" + barrier.needs->scope_reason + ")";
    const int64_t groups = behind ? worst_.groups : path_.proof.drawn_groups;
    const int64_t collected = saturating_product(groups, shape_.worst_group);
    std::string caret = "'" + barrier.name() + "'" + reason + " must collect " + plural(groups, "group") + of_a_rank() +
                        ", at worst " + std::to_string(groups) + " x " + worst_.group_text() + " = " + std::to_string(collected) +
                        " tokens";
    if (needed() > collected)
      caret += ", while " + std::to_string(needed() - collected) + " tokens of groups to choose from are drawn";
    std::vector<std::string> notes = drawn_notes(behind);
    for (std::string& note : preset_notes(draft_, barrier)) notes.push_back(std::move(note));
    draft_.error("budget-stalls", where(), tokens() + " cannot hold one iteration: the run would stall", std::move(caret),
                 enough() + without_barriers() + behind_filter(behind) + fewer_groups(), std::move(notes));
  }

  std::vector<std::string> drawn_notes(bool behind) const {
    if (behind || !path_.refill) return {};
    return {"filter '" + draft_.node(*path_.refill).name() + "' has dropped groups replaced: up to " +
            std::to_string(shape_.most_draws) + " x " + std::to_string(worst_.groups) + " groups are drawn in an iteration" +
            of_a_rank()};
  }

  const char* of_a_rank() const { return draft_.plan.owners() > 1 ? " for a rank" : ""; }

  std::string behind_filter(bool behind) const {
    if (behind || !path_.refill) return {};
    CapacityShape moved = shape_;
    moved.nodes[static_cast<size_t>(*path_.proof.needed_by)].barrier = false;
    moved.nodes.push_back({.inputs = {*moved.refill}, .reads = true, .barrier = true});
    if (prove(moved).tokens_needed > budget()) return {};
    return ", or '" + node(*path_.proof.needed_by).name() + "' behind '" + draft_.node(*path_.refill).name() + "'";
  }

  // Settings under which no barrier is left that needs more than the budget.
  std::string without_barriers() const {
    CapacityShape open = shape_;
    std::vector<const DraftNode*> barriers;
    for (size_t i = 0; i < open.nodes.size(); ++i) {
      if (!open.nodes[i].barrier || !path_.proof.holds[i]) continue;
      barriers.push_back(&node(static_cast<int>(i)));
      open.nodes[i].barrier = false;
    }
    if (prove(open).tokens_needed > budget()) return {};
    std::vector<std::string> settings;
    for (const DraftNode* barrier : barriers) {
      std::string setting = setting_without_barrier(draft_, *barrier);
      if (setting.empty()) return {};
      settings.push_back(barriers.size() == 1 ? setting : setting + " in '" + barrier->name() + "'");
    }
    return ", or " + join(settings, " and ");
  }

  // The most groups for which the budget is enough.
  std::string fewer_groups() const {
    int64_t enough = 0, too_many = shape_.groups;
    while (enough + 1 < too_many) {
      CapacityShape fewer = shape_;
      fewer.groups = enough + (too_many - enough) / 2;
      (prove(fewer).tokens_needed <= budget() ? enough : too_many) = fewer.groups;
    }
    return enough == 0 ? std::string() : ", or groups_per_iteration <= " + std::to_string(enough * draft_.plan.owners());
  }

  Draft& draft_;
  const Worst& worst_;
  const DraftPath& path_;
  const CapacityShape& shape_;
};

}  // namespace

std::string setting_without_barrier(const Draft& draft, const DraftNode& node) {
  const std::string key(trim(node.needs->scope_reason.substr(0, node.needs->scope_reason.find_first_of(" =<>"))));
  const Param* param = node.type->params.find(key);
  if (param == nullptr) return {};
  std::vector<Value> candidates;
  for (const std::string& choice : param->info.choices) candidates.push_back({choice, {}, {}});
  if (param->info.kind == ParamKind::kBoolean) candidates = {{false, {}, {}}, {true, {}, {}}};
  if (param->info.kind == ParamKind::kInteger) candidates = {{static_cast<int64_t>(param->info.minimum.value_or(1)), {}, {}}};
  for (Value& candidate : candidates) {  // each is bound and the contract asked
    Table table = node.spec->params;
    std::erase_if(table.entries, [&](const Entry& entry) { return entry.key == key; });
    const std::string text = key + " = " + toml_text(candidate);
    table.entries.push_back({key, {}, std::move(candidate)});
    Problems problems;
    BindContext context{draft.registry, problems, {}, preset_scope(draft, node)};
    const auto params = node.type->bind(table, context);
    if (problems.empty() && params != nullptr && node.type->needs(params.get()).scope == Scope::kMicroBatch) return text;
  }
  return {};
}

namespace {

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

// The share of a path that its groups of ranks which may be lost have no room in.
void check_share_of_elastic(Draft& draft, const Worst& worst, int64_t share) {
  const int64_t needed = saturating_product(2, worst.group_tokens());
  if (!worst.path->rollout || share >= needed) return;
  const DraftNode& source = draft.node(worst.path->source);
  draft.error("budget-stalls", place_of(source, kTokensInFlight),
              std::to_string(share) + " tokens in flight cannot hold two groups, and a rank that samples may be lost",
              "one that is left needs room for its own group, and for one of a lost rank",
              std::string(kTokensInFlight) + " >= " + std::to_string(needed) + ", or without elastic");
}

// Of a rank that samples: where another one may be lost it keeps room for what that was to make. On demand what is there gives way.
int64_t groups_with_room(const Draft& draft, const PlanRole& role, const Worst& worst) {
  const bool on_demand = draft.plan.budget.admission == Admission::kOnDemand && grows_on_demand(worst);
  return role.elastic && !on_demand ? 2 : 1;
}

// Where both roles have the tokens of [budget], one is judged for those that train, which need no less.
void check_making(Draft& draft, const std::vector<Worst>& paths) {
  if (draft.plan.roles.empty()) return;
  const PlanRole& role = draft.plan.roles.back();
  const bool of_budget = own_tokens(draft, role) == nullptr && own_tokens(draft, *training_role(draft)) == nullptr;
  if (of_budget && !role.elastic) return;
  int64_t needed = 0, most_groups = 1;
  const Worst* largest = nullptr;
  for (const Worst& worst : paths) {
    const auto share = draft.node(worst.path->source).source.tokens_in_flight;
    const int64_t count = groups_with_room(draft, role, worst);
    if (share && count > 1) check_share_of_elastic(draft, worst, *share);
    most_groups = std::max(most_groups, count);
    const int64_t groups = saturating_product(count, worst.group_tokens());
    needed = saturating_sum(needed, share.value_or(worst.path->rollout ? groups : 0));
    if (worst.path->rollout && (largest == nullptr || worst.group_tokens() > largest->group_tokens())) largest = &worst;
  }
  if (role.tokens_in_flight >= needed || largest == nullptr) return;
  draft.error("budget-stalls", place_of_tokens(draft, &role),
              std::to_string(role.tokens_in_flight) + " tokens in flight of a rank of role " + sluice::quoted(role.name) +
                  " cannot hold " + (most_groups > 1 ? "two groups" : "a group") + (paths.size() == 1 ? "" : " of each path") +
                  (most_groups > 1 ? ", and a rank that samples may be lost" : ": the run would stall"),
              "a group of '" + largest->maker->name() + "' is at worst " + largest->group_text() + " = " +
                  std::to_string(largest->group_tokens()) + " tokens",
              std::string(kTokensInFlight) + " >= " + std::to_string(needed) + " in [cluster.roles." + role.name + "]");
}

void check_path(Draft& draft, const Worst& worst) {
  DraftPath& path = *worst.path;
  check_micro_batch(draft, worst);
  check_pass(draft, worst);
  const CapacityShape shape = shape_of(draft, worst);
  path.proof = prove(shape);
  fill_capacity(draft, worst, shape);
  if (path.tokens_in_flight < path.proof.tokens_needed) Stall(draft, worst, shape).report();
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
