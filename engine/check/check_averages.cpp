#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// Models that are moving averages of others: what they are made of, and who may use them.
namespace sluice::engine::checking {
namespace {

SourceSpan place_of_average(const DraftModel& model) { return place_of(model.spec->params, "ema", model.spec->name.where); }

const DraftModel* averaged(const Draft& draft, const DraftModel& model) {
  const int found = draft.find_model(model.facts.average_of);
  return found < 0 ? nullptr : &draft.models[static_cast<size_t>(found)];
}

void report_nothing_to_average(Draft& draft, const DraftModel& model, const std::string& why) {
  const std::string& of = model.facts.average_of;
  draft.error("average-of-frozen", place_of_average(model),
              "'" + model.spec->name.text + "' is the moving average of '" + of + "', " + why, {},
              "ema = { of = ... } names a model that is trained; checkpoint in [models." + model.spec->name.text +
                  "] makes it a frozen one");
}

const char* misuse(ModelUse use) {
  switch (use) {
    case ModelUse::kSamples:
      return "samples from";
    case ModelUse::kUpdates:
      return "trains";
    case ModelUse::kPublishes:
      return "publishes";
    case ModelUse::kReads:
    case ModelUse::kAverages:
      break;
  }
  return nullptr;
}

void check_uses(Draft& draft, const DraftModel& model) {
  const std::string& name = model.spec->name.text;
  for (const DraftNode& node : draft.nodes) {
    if (!node.needs) continue;
    for (const ModelNeed& need : node.needs->models) {
      const char* const verb = need.model == name ? misuse(need.use) : nullptr;
      if (verb == nullptr) continue;
      draft.error("average-not-readable", place_of(node, need.param),
                  "'" + node.name() + "' " + verb + " model '" + name + "', a moving average of '" + model.facts.average_of + "'",
                  "it follows that one, and can be read alone",
                  "name " + sluice::quoted(model.facts.average_of) + ", or a model with a checkpoint of its own");
    }
  }
}

// Those who assist go through the passes of each model by themselves: of an average they would not know when it has moved.
void check_ranks(Draft& draft, const DraftModel& model) {
  if (!draft.right.cluster || draft.plan.pass_ranks() == 1) return;
  draft.error("setting-unusable", place_of(draft.spec.cluster, "sequence_parallel", draft.spec.where),
              "ranks that compute passes together have no moving averages, and '" + model.spec->name.text + "' is one", {},
              "remove sequence_parallel, or checkpoint instead of ema in [models." + model.spec->name.text + "]");
}

}  // namespace

void take_facts_of_averaged(Draft& draft, DraftModel& model) {
  const std::string name = model.spec->name.text, of = model.facts.average_of;
  const DraftModel* const other = averaged(draft, model);
  const bool usable = other != nullptr && other->params != nullptr && other->facts.trainable;
  if (!usable) model.params = nullptr;  // nothing is known of it
  if (other == nullptr) {
    std::vector<std::string> names;
    for (const DraftModel& one : draft.models) names.push_back(one.spec->name.text);
    const std::string near = did_you_mean(of, names);
    return draft.error("unknown-model", place_of_average(model),
                       "'" + name + "' is the moving average of '" + of + "', which the pipeline does not have",
                       near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?");
  }
  if (other->params == nullptr) return;
  if (!usable) return report_nothing_to_average(draft, model, "which has no optimizer");
  ModelFacts facts = other->facts;
  facts.average_of = of;
  facts.has_base = facts.trainable = facts.may_recompute = facts.follows_iterations = facts.reads_published = false;
  facts.weight_bytes = facts.snapshot_bytes = other->facts.gradient_bytes;  // float32, as gradients are; the rest is shared
  facts.common_bytes = facts.gradient_bytes = facts.passing_bytes = facts.optimizer_bytes = facts.version_bytes = 0;
  facts.wire_bytes = facts.received_bytes = 0;
  facts.learning_rate.reset();
  facts.groups.clear();
  model.facts = std::move(facts);
}

bool may_use_average(ModelUse use) { return misuse(use) == nullptr; }

void note_averages(Draft& draft) {
  for (const DraftModel& model : draft.models) {
    if (model.facts.average_of.empty() || model.params == nullptr) continue;
    check_uses(draft, model);
    check_ranks(draft, model);
    for (DraftNode& node : draft.nodes) {
      if (!node.needs) continue;
      std::vector<ModelNeed>& needs = node.needs->models;
      const auto trains = std::ranges::find_if(
          needs, [&](const ModelNeed& need) { return need.use == ModelUse::kUpdates && need.model == model.facts.average_of; });
      if (trains == needs.end()) continue;
      needs.push_back({.param = trains->param, .model = model.spec->name.text, .use = ModelUse::kAverages});
    }
  }
}

void check_average(Draft& draft, const DraftModel& model) {
  if (model.facts.average_of.empty() || model.params == nullptr || model.updater >= 0) return;
  report_nothing_to_average(draft, model, "which no node trains");
}

}  // namespace sluice::engine::checking
