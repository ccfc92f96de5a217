#include "nodes/rewards/shape_score.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nodes/columns/score_columns.h"
#include "nodes/columns/score_metrics.h"
#include "nodes/rewards/made_scores.h"

namespace sluice::nodes {
namespace {

constexpr const char* kScoreTotal = "scores";

void check(const ShapeScoreParams& params, engine::Findings& findings) {
  const bool normalized = params.normalize != ScoreScale::kNone;
  if (params.center && !normalized) {
    findings.without_effect("center", "center has no effect with normalize = \"none\": there is no mean",
                            "set normalize, or offset");
  }
  if (!normalized && params.scale == 1 && params.offset == 0 && !params.clip) {
    findings.without_effect("reads", "every score stays as it is", "set normalize, scale, offset or clip, or remove the node");
  }
  if (params.scale == 0) findings.error("scale", "scale = 0 makes all scores equal", "scale is a factor; 1 changes nothing");
  if (params.reads == params.writes) {
    findings.error("writes", "'" + params.writes + "' is the column that is read",
                   "let the scorer write another column (its parameter writes)");
  }
}

}  // namespace

void ShapeScore::describe(engine::Contract<ShapeScoreParams>& c) {
  using P = ShapeScoreParams;
  c.type("shape_score", "normalizes, scales, shifts and clips a score");
  c.param("reads", &P::reads).doc("the column of the score");
  c.param("writes", &P::writes).doc("the column of the shaped score");
  c.param("normalize", &P::normalize)
      .doc(
          "divides by the standard deviation of the scores of: past: the finished iterations, running: these and this one, "
          "iteration: this one; none: does not");
  c.param("center", &P::center).doc("subtracts the mean of the same scores first");
  c.param("scale", &P::scale).between(-kLargestScore, kLargestScore).doc("factor of the result");
  c.param("offset", &P::offset).between(-kLargestScore, kLargestScore).doc("added to it");
  c.param("clip", &P::clip).above(0).at_most(kLargestScore).doc("the result is kept within -clip and clip; unset: it is not");
  c.reads_named(&P::reads, engine::DType::kFloat32, engine::Extent::kSample);
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kSample);
  c.iteration_scope_if([](const P& params) { return params.normalize == ScoreScale::kRunning; }, "normalize = \"running\"");
  c.iteration_scope_if([](const P& params) { return params.normalize == ScoreScale::kIteration; }, "normalize = \"iteration\"");
  c.total_if([](const P& params) { return params.normalize != ScoreScale::kNone; }, kScoreTotal);
  describe_scores(c);
  describe_counted_samples(c);
  describe_score_metric(c, "clipped", engine::Metric::kMean, "share of the scores that clip has cut");
  describe_score_metric(c, "norm_mean", engine::Metric::kValue, "the mean that normalize works with");
  describe_score_metric(c, "norm_std", engine::Metric::kValue, "the standard deviation that normalize works with");
  c.check(check);
}

void ShapeScore::process(engine::MicroBatch& batch) {
  note(batch);
  shape(batch);
}

void ShapeScore::gather(int64_t, std::span<engine::MicroBatch> batches) {
  for (const engine::MicroBatch& batch : batches) note(batch);
}

void ShapeScore::process_iteration(int64_t, std::span<engine::MicroBatch> batches) {
  if (params_.normalize == ScoreScale::kIteration) moments_ = {};
  moments_.absorb(totals_.of_all(kScoreTotal));
  for (engine::MicroBatch& batch : batches) shape(batch);
}

void ShapeScore::end_iteration(const engine::Iteration&) {
  if (params_.normalize == ScoreScale::kPast) moments_.absorb(totals_.of_all(kScoreTotal));
}

void ShapeScore::note(const engine::MicroBatch& batch) {
  const auto scores = finite_scores(batch, params_.reads);
  if (params_.normalize == ScoreScale::kNone) return;
  ExactMoments& seen = totals_.mine(kScoreTotal);
  for (const float score : counted_scores(scores, counted_samples(batch), {0, scores.size()})) seen.add(score);
}

void ShapeScore::shape(engine::MicroBatch& batch) {
  const auto scores = batch.read(score_column(params_.reads)).entries<float>();  // [S]
  const std::vector<bool> counted = counted_samples(batch);
  std::vector<double> shaped;
  const bool known = params_.normalize != ScoreScale::kNone && moments_.count() > 0;
  const double mean = known && params_.center ? moments_.mean() : 0;
  const double deviation = known && moments_.deviation() > 0 ? moments_.deviation() : 1;

  for (size_t s = 0; s < scores.size(); ++s) {
    double score = params_.scale * (scores[s] - mean) / deviation + params_.offset;
    if (params_.clip) {
      if (counted[s]) metrics_.mean(score_metric(params_.writes, "clipped"), std::abs(score) > *params_.clip);
      score = std::clamp(score, -*params_.clip, *params_.clip);
    }
    shaped.push_back(score);
  }
  write_scores(batch, params_.writes, shaped, metrics_);
  if (!known) return;
  metrics_.value(score_metric(params_.writes, "norm_mean"), moments_.mean());
  metrics_.value(score_metric(params_.writes, "norm_std"), moments_.deviation());
}

}  // namespace sluice::nodes
