#include "nodes/columns/weighted_scores.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace sluice::nodes {

void check_weighted_scores(const WeightedScoresParams& params, engine::Findings& findings) {
  if (params.scores.empty()) findings.error("scores", "there is no score to add", "name the columns that scorers write");
  std::set<std::string> seen;
  for (const std::string& name : params.scores) {
    if (!seen.insert(name).second) findings.error("scores", "'" + name + "' is named twice", "give it a larger weight");
  }
  if (params.weights.empty()) return;
  if (params.weights.size() != params.scores.size()) {
    findings.error("weights",
                   plural(static_cast<int64_t>(params.weights.size()), "weight") + " for " +
                       plural(static_cast<int64_t>(params.scores.size()), "score"),
                   "one weight for each score, in the same order");
  } else if (std::ranges::all_of(params.weights, [](double weight) { return weight == 0; })) {
    findings.error("weights", "every weight is 0, so every sum would be 0", "give a score a weight");
  }
}

}  // namespace sluice::nodes
