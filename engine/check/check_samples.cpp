#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// Whether groups have enough samples for the nodes that compare them.
namespace sluice::engine::checking {

void check_samples(Draft& draft) {
  for (const DraftNode& node : draft.nodes) {
    const DraftPath* const path = draft.path_of(node);
    if (!node.bound || path == nullptr) continue;
    const DraftNode& maker = draft.node(path->maker());
    if (!maker.bound || maker.needs->samples_per_group <= 0) continue;
    const int64_t samples = maker.needs->samples_per_group, least = node.needs->least_samples;
    if (samples >= least) continue;
    draft.error("too-few-samples", place_of(node),
                "'" + node.name() + "' compares at least " + plural(least, "sample") + " of a prompt, and '" + maker.name() +
                    "' makes " + std::to_string(samples),
                "with fewer there is nothing to compare", std::to_string(least) + " samples of a prompt or more");
  }
}

}  // namespace sluice::engine::checking
