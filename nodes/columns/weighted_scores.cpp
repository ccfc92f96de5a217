#include "nodes/columns/weighted_scores.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text/strings.h"

namespace sluice::nodes {

void check_weighted_scores(const WeightedScoresParams& params, engine::Findings& findings) {
  if (params.scores.empty()) findings.error("scores", "there is no score to add", "name the columns that scorers write");
  std::set<std::string> seen;
  for (const std::string& name : params.scores) {
    if (!seen.insert(name).second) findings.error("scores", "'" + name + "' is named twice", "give it a larger weight");
  }
  if (params.weights.empty()) return;
  const auto is_too_large = [](double weight) { return std::abs(weight) > kLargestScore; };
  const auto large = std::ranges::find_if(params.weights, is_too_large);
  if (large != params.weights.end())
    findings.error("weights", "a weight of " + real_text(*large) + " makes scores that no float32 holds",
                   "weights from -1e38 to 1e38");
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
