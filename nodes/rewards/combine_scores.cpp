#include "nodes/rewards/combine_scores.h"

#include <algorithm>
#include <vector>

#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

void CombineScores::describe(engine::Contract<CombineScoresParams>& c) {
  using P = CombineScoresParams;
  c.type("combine_scores", "adds several scores of a sample into one, with weights");
  describe_weighted_scores(c);
  c.param("writes", &P::writes).doc("the column of the sum");
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kSample);
  describe_scores(c);
  c.check([](const P& params, engine::Findings& findings) {
    if (std::ranges::find(params.scores, params.writes) == params.scores.end()) return;
    findings.error("writes", "'" + params.writes + "' is one of the scores that are read",
                   "let the scorer write another column (its parameter writes)");
  });
}

void CombineScores::process(engine::MicroBatch& batch) {
  std::vector<double> sums(batch.samples());
  for (size_t k = 0; k < params_.scores.size(); ++k) {
    const auto scores = finite_scores(batch, params_.scores[k]);  // [S]
    for (size_t s = 0; s < scores.size(); ++s) sums[s] += params_.weight_of(k) * scores[s];
  }
  auto combined = batch.write(score_column(params_.writes)).entries<float>();  // [S]
  std::ranges::transform(sums, combined.begin(), [](double sum) { return static_cast<float>(sum); });
  record_scores(metrics_, params_.writes, combined, group_of_samples(batch.layout()));
}

}  // namespace sluice::nodes
