#include <algorithm>

#include "base/strings.h"
#include "engine/check_draft.h"

// Can the run stall? Groups are admitted in order, each with its worst case in tokens, and credit returns when the last reader of
// a micro-batch is done. Two things hold tokens back: the packer, which closes a micro-batch as soon as another worst-case group
// might not fit, so that it waits for min(micro_batch_tokens, iteration) tokens at most; and a barrier, which waits for the whole
// iteration.
namespace sluice::engine::checking {
namespace {

struct Worst {
  const DraftNode* maker;  // the node that makes the samples
  int64_t groups;
  int64_t samples;  // of a group
  int64_t tokens;   // of a sample

  int64_t group_tokens() const { return saturating_product(samples, tokens); }
  int64_t iteration_tokens() const { return saturating_product(groups, group_tokens()); }
  std::string group_text() const { return std::to_string(samples) + " x " + std::to_string(tokens); }
};

std::optional<Worst> worst_case(const Draft& draft) {
  if (!draft.source) return std::nullopt;
  const DraftNode& source = draft.node(*draft.source);
  const DraftNode& maker = draft.node(draft.rollout.value_or(*draft.source));
  if (!source.bound || !maker.bound) return std::nullopt;
  const Worst worst{&maker, source.needs->groups_per_iteration, maker.needs->samples_per_group, maker.needs->worst_sample_tokens};
  if (worst.groups <= 0 || worst.samples <= 0 || worst.tokens <= 0) return std::nullopt;
  return worst;
}

// Without bounds nothing can be proven. The contract of a type is to give them; a source without samples has been reported
// already.
void report_unbounded(Draft& draft) {
  if (!draft.source) return;
  const DraftNode& source = draft.node(*draft.source);
  const DraftNode& maker = draft.node(draft.rollout.value_or(*draft.source));
  if (!source.bound || !maker.bound || maker.needs->samples_per_group <= 0) return;
  const bool by_source = source.needs->groups_per_iteration <= 0;
  const DraftNode& node = by_source ? source : maker;
  draft.error("contract-unbounded", place_of(node),
              "type " + sluice::quoted(node.type->info.type) + " gives no bound for " +
                  (by_source ? "the groups of an iteration" : "the tokens of a sample"),
              {}, std::string("its contract must set ") + (by_source ? "groups_per_iteration" : "worst_sample_tokens"));
}

void check_positions(Draft& draft, const Worst& worst) {
  std::vector<std::string> reported;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    if (!node.needs) continue;
    for (const ModelNeed& need : node.needs->models) {
      const int found = draft.find_model(need.model);
      if (found < 0 || need.use == ModelUse::kPublishes) continue;
      const int64_t limit = draft.models[static_cast<size_t>(found)].facts.max_positions;
      if (limit <= 0 || worst.tokens <= limit || std::find(reported.begin(), reported.end(), need.model) != reported.end())
        continue;
      reported.push_back(need.model);
      draft.error("sample-too-long", place_of(node, need.param),
                  "samples of up to " + std::to_string(worst.tokens) + " tokens do not fit model '" + need.model +
                      "', which takes " + std::to_string(limit),
                  "prompt and response of '" + worst.maker->name() + "' together",
                  "shorten them by " + std::to_string(worst.tokens - limit) + " tokens in [nodes." + worst.maker->name() + "]");
    }
  }
}

void check_micro_batch(Draft& draft, const Worst& worst) {
  const int64_t size = draft.plan.budget.micro_batch_tokens;
  if (size >= worst.group_tokens()) return;
  const int64_t samples = size / worst.tokens;
  draft.error("group-exceeds-micro-batch", place_of(draft.spec.budget, "micro_batch_tokens", draft.spec.where),
              "a micro-batch of " + std::to_string(size) + " tokens cannot hold one group",
              "a group of '" + worst.maker->name() + "' is at worst " + worst.group_text() + " = " +
                  std::to_string(worst.group_tokens()) + " tokens",
              "micro_batch_tokens >= " + std::to_string(worst.group_tokens()) +
                  (samples > 0 ? ", or at most " + plural(samples, "sample") + " a group" : ", or shorter samples"));
}

// Another value of the setting that makes a node a barrier, under which it is none: each candidate is bound and asked.
std::string setting_without_barrier(const Draft& draft, const DraftNode& node) {
  const std::string key(trim(node.needs->scope_reason.substr(0, node.needs->scope_reason.find_first_of(" =<>"))));
  const Param* param = node.type->params.find(key);
  if (param == nullptr) return {};
  std::vector<Value> candidates;
  for (const std::string& choice : param->info.choices) candidates.push_back({choice, {}, {}});
  if (param->info.kind == ParamKind::kBoolean) candidates = {{false, {}, {}}, {true, {}, {}}};
  if (param->info.kind == ParamKind::kInteger) candidates = {{static_cast<int64_t>(param->info.minimum.value_or(1)), {}, {}}};
  for (Value& candidate : candidates) {
    Table table = node.spec->params;
    std::erase_if(table.entries, [&](const Entry& entry) { return entry.key == key; });
    const std::string text = key + " = " + toml_text(candidate);
    table.entries.push_back({key, {}, std::move(candidate)});
    Problems problems;
    BindContext context{draft.registry, problems, {}};
    const auto params = node.type->bind(table, context);
    if (problems.empty() && params != nullptr && node.type->needs(params.get()).scope == Scope::kMicroBatch) return text;
  }
  return {};
}

std::string without_barriers(const Draft& draft, const std::vector<const DraftNode*>& barriers) {
  std::vector<std::string> settings;
  for (const DraftNode* barrier : barriers) {
    std::string setting = setting_without_barrier(draft, *barrier);
    if (setting.empty()) return {};
    settings.push_back(barriers.size() == 1 ? setting : setting + " in '" + barrier->name() + "'");
  }
  return ", or " + join(settings, " and ");
}

void report_stall_at_barrier(Draft& draft, const Worst& worst, const std::vector<const DraftNode*>& barriers) {
  const int64_t budget = draft.plan.budget.tokens_in_flight;
  const int64_t needed = worst.iteration_tokens();
  const DraftNode& barrier = *barriers.front();
  std::string help = "tokens_in_flight >= " + std::to_string(needed) + without_barriers(draft, barriers);
  if (const int64_t groups = budget / worst.group_tokens(); groups > 0)
    help += ", or groups_per_iteration <= " + std::to_string(groups);
  const std::string reason = barrier.needs->scope_reason.empty() ? "" : " (" + barrier.needs->scope_reason + ")";
  draft.error("budget-stalls", place_of(draft.spec.budget, "tokens_in_flight", draft.spec.where),
              std::to_string(budget) + " tokens in flight cannot hold one iteration: the run would stall",
              "'" + barrier.name() + "'" + reason + " must collect " + plural(worst.groups, "group") + ", at worst " +
                  std::to_string(worst.groups) + " x " + worst.group_text() + " = " + std::to_string(needed) + " tokens",
              std::move(help));
}

void report_stall_at_packer(Draft& draft, const Worst& worst, int64_t needed) {
  const int64_t budget = draft.plan.budget.tokens_in_flight;
  const bool smaller_batches = budget >= worst.group_tokens();
  draft.error("budget-stalls", place_of(draft.spec.budget, "tokens_in_flight", draft.spec.where),
              std::to_string(budget) + " tokens in flight cannot fill one micro-batch: the run would stall",
              "a micro-batch is handed on when it holds " + std::to_string(needed) + " tokens at worst",
              "tokens_in_flight >= " + std::to_string(needed) +
                  (smaller_batches ? ", or micro_batch_tokens <= " + std::to_string(budget) : std::string()));
}

}  // namespace

void check_capacity(Draft& draft) {
  const auto worst = worst_case(draft);
  if (!worst) return report_unbounded(draft);
  check_positions(draft, *worst);
  if (!draft.settings_bound) return;
  check_micro_batch(draft, *worst);

  std::vector<const DraftNode*> barriers;
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    if (node.bound && node.needs->scope == Scope::kIteration) barriers.push_back(&node);
  }
  PlanCapacity& capacity = draft.plan.capacity;
  capacity.group_tokens = worst->group_tokens();
  capacity.iteration_tokens = worst->iteration_tokens();
  capacity.tokens_needed =
      barriers.empty() ? std::min(draft.plan.budget.micro_batch_tokens, capacity.iteration_tokens) : capacity.iteration_tokens;
  capacity.needed_by = barriers.empty() ? worst->maker->name() : barriers.front()->name();
  if (draft.plan.budget.tokens_in_flight >= capacity.tokens_needed) return;
  if (barriers.empty())
    report_stall_at_packer(draft, *worst, std::max(capacity.tokens_needed, capacity.group_tokens));
  else
    report_stall_at_barrier(draft, *worst, barriers);
}

}  // namespace sluice::engine::checking
