#include "nodes/rewards/combine_scores.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text/strings.h"
#include "nodes/columns/score_metrics.h"
#include "nodes/rewards/made_scores.h"

namespace sluice::nodes {
namespace {

void check_weighted_sum(const CombineScoresParams& params, engine::Findings& findings) {
  if (std::ranges::find(params.scores, params.writes) != params.scores.end()) {
    findings.error("writes", "'" + params.writes + "' is one of the scores that are read",
                   "let the scorer write another column (its parameter writes)");
  }
}

}  // namespace

void CombineScores::describe(engine::Contract<CombineScoresParams>& c) {
  using P = CombineScoresParams;
  c.type("combine_scores", "adds several scores of a sample into one, with weights");
  describe_weighted_scores(c);
  c.param("writes", &P::writes).doc("the column of the sum");
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kSample);
  describe_scores(c);
  describe_counted_samples(c);
  c.check(check_weighted_sum);
}

void CombineScores::process(engine::MicroBatch& batch) {
  std::vector<double> sums(batch.samples());
  for (size_t k = 0; k < params_.scores.size(); ++k) {
    const auto scores = finite_scores(batch, params_.scores[k]);  // [S]
    for (size_t s = 0; s < scores.size(); ++s) sums[s] += params_.weight_of(k) * scores[s];
  }
  write_scores(batch, params_.writes, sums, metrics_);
}

}  // namespace sluice::nodes
