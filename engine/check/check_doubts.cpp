#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/plan/bind_settings.h"
#include "engine/plan/recorded_origin.h"

// Settings that are allowed, each by itself and together, but hardly meant: all of them are warnings.
namespace sluice::engine::checking {
namespace {

std::string keyed(const char* key, int64_t value) { return std::string(key) + " = " + std::to_string(value); }

void doubt_lag(Draft& draft) {
  const int64_t lag = draft.plan.schedule.policy_lag, iterations = draft.plan.pipeline.iterations;
  if (lag == 0 || lag < iterations) return;
  draft.warning(
      "lag-exceeds-run", place_of(draft.spec.schedule, "policy_lag", draft.spec.where),
      keyed("policy_lag", lag) + " in a run of " + plural(iterations, "iteration") + ": all samples come from the first weights",
      "trained weights are never sampled", "a smaller policy_lag, or more iterations");
}

// A layer or a --set that shortens a run is a trial: what it inherits need not suit it.
bool written_together(const Table& a, const char* key_a, const Table& b, const char* key_b) {
  const Entry* one = a.find(key_a);
  const Entry* other = b.find(key_b);
  return one != nullptr && other != nullptr && were_written_together(one->value.where, other->value.where);
}

void doubt_checkpoint(Draft& draft) {
  const int64_t every = draft.plan.checkpoint.every_iterations, iterations = draft.plan.pipeline.iterations;
  if (every == 0) return;
  const SourceSpan where = place_of(draft.spec.checkpoint, "every_iterations", draft.spec.where);
  if (every > iterations && written_together(draft.spec.checkpoint, "every_iterations", draft.spec.pipeline, "iterations")) {
    draft.warning(
        "checkpoint-without-effect", where,
        keyed("every_iterations", every) + " in a run of " + plural(iterations, "iteration") + ": it saves only at its end", {},
        "a smaller every_iterations, or 0");
  }
}

void doubt_cores(Draft& draft) {
  if (draft.plan.runtime.cores <= resolved_cores(0)) return;
  draft.warning("cores-exceed-machine", place_of(draft.spec.runtime, "cores", draft.spec.where),
                keyed("cores", draft.plan.runtime.cores) + " is more than this process may use: threads will wait for each other",
                {}, "remove cores: the default is all that there are");
}

void doubt_micro_batch(Draft& draft) {
  const BudgetSettings& budget = draft.plan.budget;
  if (budget.micro_batch_tokens.value <= budget.tokens_in_flight) return;
  draft.warning("micro-batch-exceeds-budget", place_of(draft.spec.budget, "micro_batch_tokens", draft.spec.where),
                "no micro-batch can hold " + std::to_string(budget.micro_batch_tokens.value) +
                    " tokens: " + keyed("tokens_in_flight", budget.tokens_in_flight),
                {}, "micro_batch_tokens <= " + std::to_string(budget.tokens_in_flight));
}

// An iteration measures once, the first one the weights before training.
void doubt_measuring(Draft& draft, const DraftPath& path) {
  const DraftNode& source = draft.node(path.source);
  if (!source.source.before_training || draft.plan.pipeline.iterations > 1) return;
  if (!written_together(source.spec->params, "before_training", draft.spec.pipeline, "iterations")) return;
  draft.warning("never-measured", place_of(source, "before_training"),
                "'" + source.name() + "' measures before training only: what the one iteration of this run makes is not measured",
                {}, "iterations >= 2, or before_training = false with every_iterations = 1");
}

// The head of a checkpoint that is a language model is made up of random numbers. What expects a frozen model (a reward model) is
// meant to get one that was trained before.
void doubt_critic(Draft& draft, const DraftModel& model) {
  if (!model.is_idle_critic()) return;
  const std::string& name = model.spec->name.text;
  for (const DraftNode& reader : draft.nodes) {
    if (!reader.needs) continue;
    const auto need = std::ranges::find_if(reader.needs->models, [&](const ModelNeed& n) {
      return n.model == name && n.use == ModelUse::kReads && n.head == "value" && !n.expects_frozen;
    });
    if (need == reader.needs->models.end()) continue;
    draft.warning("critic-not-trained", place_of(reader, need->param),
                  "'" + reader.name() + "' reads critic '" + name + "', which nothing trains",
                  "right only for a checkpoint that was trained as a critic", "name it as the critic of the node that trains");
    return;
  }
}

void doubt_reference(Draft& draft, const DraftNode& node) {
  for (const ModelNeed& need : node.needs->models) {
    const int found = draft.find_model(need.model);
    if (!need.expects_frozen || found < 0 || need.head == "value") continue;  // scores of a trained head are no reference
    const DraftModel& model = draft.models[static_cast<size_t>(found)];
    const int updater = model.updater;
    if (updater < 0 || !model.facts.average_of.empty()) continue;  // whoever asks for an average means it
    draft.warning("reference-is-trained", place_of(node, need.param),
                  "'" + node.name() + "' takes model '" + need.model + "' as the reference, which '" +
                      draft.node(updater).name() + "' trains",
                  "the reference would move with the policy",
                  "add a model with the same checkpoint and no optimizer, and name that");
  }
}

}  // namespace

void check_doubts(Draft& draft) {
  doubt_lag(draft);
  doubt_checkpoint(draft);
  doubt_cores(draft);
  doubt_micro_batch(draft);
  for (const DraftPath& path : draft.paths) doubt_measuring(draft, path);
  for (const DraftModel& model : draft.models) doubt_critic(draft, model);
  for (const DraftNode& node : draft.nodes) doubt_reference(draft, node);
}

}  // namespace sluice::engine::checking
