#include "engine/check/check.h"

#include <algorithm>
#include <utility>

#include "engine/check/check_draft.h"
#include "engine/memory/memory_bound.h"
#include "engine/plan/bind_settings.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

struct Asked {
  const PipelineSpec& spec;
  const Registry& registry;
  int ranks;
};

// With micro_batch_tokens = "auto" as `micro_batch`, or a group if that is more.
CheckResult check_with(const Asked& asked, int64_t micro_batch) {
  const auto& [spec, registry, ranks] = asked;
  checking::Draft draft(spec, registry);
  draft.plan.ranks = ranks;
  draft.chosen_micro_batch = micro_batch;
  draft.right = bind_settings(spec, registry, draft.problems, draft.plan);
  checking::resolve_preset(draft);
  checking::resolve_nodes(draft);
  checking::check_graph(draft);
  checking::check_roles(draft);
  checking::settle_choices(draft);
  checking::check_filters(draft);
  checking::check_samples(draft);
  checking::bind_models(draft);  // a node runs where its models are, and some metrics are of some models
  checking::check_metrics(draft);
  checking::check_executors(draft);
  checking::check_models(draft);
  checking::check_columns(draft);
  checking::check_capacity(draft);
  // In a graph with other errors a missing edge would often be only their consequence.
  if (!has_errors(draft.problems)) checking::check_order_of_readers(draft);
  if (!has_errors(draft.problems)) {
    checking::check_effect(draft);
    checking::check_preset(draft);
    checking::check_doubts(draft);
    checking::check_on_policy(draft);
    checking::check_routes(draft);
  }
  if (has_errors(draft.problems)) return {std::nullopt, std::move(draft.problems)};
  checking::assemble_plan(draft);
  draft.plan.model_type = registry.model_type();
  checking::check_wanted_metrics(draft);
  if (has_errors(draft.problems)) return {std::nullopt, std::move(draft.problems)};
  checking::check_memory(draft);
  CheckResult result{.plan = {}, .problems = std::move(draft.problems)};
  (has_errors(result.problems) ? result.too_large : result.plan) = std::move(draft.plan);
  return result;
}

// The largest micro-batch, in steps of kStep tokens, that leaves memory and lets one be trained while another is sampled. Where
// the pass is chosen too, it is the smallest one. It is not limited by what one rank has of an iteration, so that it does not
// depend on how many there are.
CheckResult with_largest_micro_batch(const Asked& asked, CheckResult smallest) {
  constexpr int64_t kStep = 256;
  const int64_t budget = smallest.plan->main_path().tokens_in_flight;
  const int64_t iteration = saturating_product(smallest.plan->main_path().capacity.iteration_tokens, smallest.plan->owners());
  int64_t enough = 0, too_many = std::min(budget / 2, iteration) / kStep + 1;
  while (enough + 1 < too_many) {
    const int64_t middle = enough + (too_many - enough) / 2;
    CheckResult candidate = check_with(asked, middle * kStep);
    const bool fits = candidate.plan && leaves_memory(candidate.plan->memory);
    (fits ? enough : too_many) = middle;
    if (fits) smallest = std::move(candidate);
  }
  return smallest;
}

// What was chosen is shown where the key is.
void show_choice(Plan& plan, const std::string& name, const IntegerOrAuto& chosen) {
  if (!chosen.automatic) return;
  for (EffectiveKey& key : plan.effective) {
    if (key.table != "budget" || key.key != name) continue;
    key.text = std::to_string(chosen.value);
    key.origin = "auto, " + key.origin;
  }
}

}  // namespace

CheckResult check(const PipelineSpec& spec, const Registry& registry, int ranks) {
  const Asked asked{spec, registry, ranks};
  CheckResult result = check_with(asked, 0);
  if (!result.plan) return result;
  if (result.plan->budget.micro_batch_tokens.automatic) {
    result = with_largest_micro_batch(asked, std::move(result));
  }
  const BudgetSettings& budget = result.plan->budget;
  show_choice(*result.plan, "micro_batch_tokens", budget.micro_batch_tokens);
  show_choice(*result.plan, "pass_tokens", budget.pass_tokens);
  return result;
}

}  // namespace sluice::engine
