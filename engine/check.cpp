#include "engine/check_draft.h"
#include "engine/settings.h"

namespace sluice::engine {

CheckResult check(const PipelineSpec& spec, const Registry& registry) {
  checking::Draft draft(spec, registry);
  bind_settings(spec, registry, draft.problems, draft.plan);
  draft.settings_bound = !has_errors(draft.problems);
  checking::resolve_preset(draft);
  checking::resolve_nodes(draft);
  checking::check_graph(draft);
  checking::settle_choices(draft);
  checking::check_filters(draft);
  checking::bind_models(draft);  // a node runs where its models are
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
  }
  if (has_errors(draft.problems)) return {std::nullopt, std::move(draft.problems)};
  checking::assemble_plan(draft);
  draft.plan.model_type = registry.model_type();
  checking::check_memory(draft);
  if (has_errors(draft.problems)) return {std::nullopt, std::move(draft.problems)};
  return {std::move(draft.plan), std::move(draft.problems)};
}

}  // namespace sluice::engine
