#include "nodes/rewards/compare_scores.h"

#include <utility>
#include <vector>

#include "nodes/columns/score_columns.h"
#include "nodes/columns/score_metrics.h"
#include "nodes/rewards/made_scores.h"

namespace sluice::nodes {

void CompareScores::describe(engine::Contract<CompareScoresParams>& c) {
  using P = CompareScoresParams;
  c.type("compare_scores", "how well one score orders the samples of a group as another does");
  c.param("column", &P::column).required().doc("column of the scores to judge, one a sample");
  c.param("against", &P::against).doc("column of the scores that are taken to be right");
  c.reads_named(&P::column, engine::DType::kFloat32, engine::Extent::kSample);
  c.reads_named(&P::against, engine::DType::kFloat32, engine::Extent::kSample);
  describe_counted_samples(c);
  c.check([](const P& params, engine::Findings& findings) {
    if (params.column == params.against)
      findings.error("against", "column and against are the same column", "name two scores, such as \"reward\" and \"score\"");
  });
  c.metrics("reward/COLUMN_accuracy", engine::Metric::kMean,
            "share of the pairs told apart by `against` that `column` orders alike; equal ones count half",
            [](const P& params) { return std::vector{score_metric(params.column, "accuracy")}; });
  c.metrics("reward/COLUMN_margin", engine::Metric::kMean,
            "mean of `column` of the better sample of such a pair minus that of the worse",
            [](const P& params) { return std::vector{score_metric(params.column, "margin")}; });
}

void CompareScores::process(engine::MicroBatch& batch) {
  const auto judged = scores_that_count(batch, params_.column);  // [S]
  const auto right = scores_that_count(batch, params_.against);  // [S]
  const std::vector<bool> counted = counted_samples(batch);      // [S]
  for (const engine::Range samples : batch.layout().samples_by_group()) {
    for (size_t a = samples.begin; a < samples.end; ++a) {
      for (size_t b = a + 1; b < samples.end; ++b) {
        if (right[a] == right[b] || !counted[a] || !counted[b]) continue;
        const auto [better, worse] = right[a] > right[b] ? std::pair(a, b) : std::pair(b, a);
        metrics_.mean(score_metric(params_.column, "accuracy"), judged[better] > judged[worse]    ? 1
                                                                : judged[better] == judged[worse] ? 0.5
                                                                                                  : 0);
        metrics_.mean(score_metric(params_.column, "margin"), static_cast<double>(judged[better]) - judged[worse]);
      }
    }
  }
}

}  // namespace sluice::nodes
