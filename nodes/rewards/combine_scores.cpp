#include "nodes/rewards/combine_scores.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "nodes/rewards/score_columns.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {
namespace {

void check_scores(const CombineScoresParams& params, engine::Findings& findings) {
  if (params.scores.empty()) findings.error("scores", "there is no score to add", "name the columns that scorers write");
  std::set<std::string> seen;
  for (const std::string& name : params.scores) {
    if (!seen.insert(name).second) findings.error("scores", "'" + name + "' is named twice", "give it a larger weight");
  }
  if (seen.contains(params.writes)) {
    findings.error("writes", "'" + params.writes + "' is one of the scores that are read",
                   "let the scorer write another column (its parameter writes)");
  }
}

void check_weights(const CombineScoresParams& params, engine::Findings& findings) {
  if (params.weights.empty()) return;
  if (params.weights.size() != params.scores.size()) {
    findings.error("weights",
                   plural(static_cast<int64_t>(params.weights.size()), "weight") + " for " +
                       plural(static_cast<int64_t>(params.scores.size()), "score"),
                   "one weight for each score, in the same order");
  } else if (std::ranges::all_of(params.weights, [](double weight) { return weight == 0; })) {
    findings.error("weights", "every weight is 0, so every score would be 0", "give a score a weight");
  }
}

}  // namespace

void CombineScores::describe(engine::Contract<CombineScoresParams>& c) {
  using P = CombineScoresParams;
  c.type("combine_scores", "adds several scores of a sample into one, with weights");
  c.param("scores", &P::scores).required().doc("the columns that are added");
  c.param("weights", &P::weights).doc("of each of them; empty: all 1");
  c.param("writes", &P::writes).doc("the column of the sum");
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    for (const std::string& name : params.scores) needs.reads.push_back(score_column(name));
    needs.writes.push_back(score_column(params.writes));
  });
  describe_scores(c);
  c.check(check_scores);
  c.check(check_weights);
}

void CombineScores::process(engine::MicroBatch& batch) {
  std::vector<double> sums(batch.samples());
  for (size_t k = 0; k < params_.scores.size(); ++k) {
    const auto scores = finite_scores(batch, params_.scores[k]);  // [S]
    const double weight = params_.weights.empty() ? 1 : params_.weights[k];
    for (size_t s = 0; s < scores.size(); ++s) sums[s] += weight * scores[s];
  }
  auto combined = batch.write(score_column(params_.writes)).entries<float>();  // [S]
  std::ranges::transform(sums, combined.begin(), [](double sum) { return static_cast<float>(sum); });
  record_scores(metrics_, params_.writes, combined, group_of_samples(batch.layout()));
}

}  // namespace sluice::nodes
