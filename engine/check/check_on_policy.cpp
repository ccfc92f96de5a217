#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// Which weights the samples are of that a model is trained on, and whether its trainer can work with that.
namespace sluice::engine::checking {
namespace {

// A component's name, without its parameters.
std::string short_text(const Param& param, const void* params) {
  const std::string text = param.text(params);
  if (param.info.kind != ParamKind::kComponent) return text;
  const size_t begin = text.find('"'), end = text.find('"', begin + 1);
  return begin == std::string::npos || end == std::string::npos ? text : text.substr(begin, end - begin + 1);
}

void doubt_off_policy(Draft& draft) {
  const int64_t lag = draft.plan.schedule.policy_lag;
  if (lag == 0) return;
  for (const DraftModel& model : draft.models) {
    if (!draft.trains_what_it_samples(model)) continue;
    const DraftNode& trainer = draft.node(model.updater);
    const std::string& key = trainer.needs->uncorrected_by;
    if (key.empty()) continue;
    const Param* param = trainer.type->params.find(key);
    const std::string value = param == nullptr ? std::string() : " = " + short_text(*param, trainer.params.get());
    draft.warning("off-policy-uncorrected", place_of(trainer, key),
                  "'" + trainer.name() + "' does not correct for samples that are " + plural(lag, "version") + " old",
                  key + value + " is right only for samples of the current weights",
                  "policy_lag = 0, or a setting that corrects");
  }
}

void refuse_exact(Draft& draft, const DraftNode& trainer, std::string message, std::string help) {
  const std::string& key = trainer.needs->exact_by;
  draft.error("on-policy-impossible", place_of(trainer, key),
              "'" + trainer.name() + "' demands exact samples, but " + std::move(message), {},
              std::move(help) + ", or " + key + " = \"measured\"");
}

void check_exact(Draft& draft, const DraftNode& trainer) {
  bool samples = false;
  for (const DraftModel& model : draft.models) {
    if (model.updater < 0 || &draft.node(model.updater) != &trainer || !draft.trains_what_it_samples(model)) continue;
    samples = true;
    const std::string& differs = model.facts.sampling_differs;
    if (!differs.empty())
      refuse_exact(draft, trainer, differs + ": sums have another order",
                   "other settings of model '" + model.spec->name.text + "'");
  }
  if (!samples) return refuse_exact(draft, trainer, "no node samples from the model that it trains", "a rollout of that model");
  if (draft.plan.ring() > 1)
    refuse_exact(draft, trainer, "it is trained in a ring: sums of attention have another order", "remove ring in [cluster]");
  const int64_t lag = draft.plan.schedule.policy_lag;
  if (lag > 0) refuse_exact(draft, trainer, "samples are " + plural(lag, "version") + " old", "policy_lag = 0");
}

}  // namespace

void check_on_policy(Draft& draft) {
  doubt_off_policy(draft);
  for (const DraftNode& node : draft.nodes) {
    if (!node.needs->exact_by.empty()) check_exact(draft, node);
  }
}

}  // namespace sluice::engine::checking
