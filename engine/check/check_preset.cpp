#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/contract/preset_check.h"

// The preset of [pipeline]: which one it is, and whether it has anything to say of this pipeline.
namespace sluice::engine::checking {
namespace {

SourceSpan place_of_preset(const Draft& draft) { return place_of(draft.spec.pipeline, "preset", draft.spec.where); }

// An effective pipeline has every value of its preset written out, and is as valid as the one that it came from: what counts is
// that there are values, not that they are taken.
bool has_values(const Draft& draft) {
  const auto uses = [](const auto& of) { return !of.preset_uses.empty(); };
  return std::ranges::any_of(draft.nodes, uses) || std::ranges::any_of(draft.models, uses);
}

}  // namespace

void resolve_preset(Draft& draft) {
  const auto& name = draft.plan.pipeline.preset;
  if (name) draft.preset = choose_preset(draft.registry, *name, place_of_preset(draft), draft.problems);
}

void check_preset(Draft& draft) {
  if (draft.preset == nullptr || has_values(draft)) return;
  draft.error("setting-without-effect", place_of_preset(draft),
              "preset " + sluice::quoted(draft.preset->name) + " has no effect: it has no values for the types of this pipeline",
              {}, "remove preset");
}

}  // namespace sluice::engine::checking
