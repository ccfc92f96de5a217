#include "nodes/rewards/made_scores.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/score_columns.h"
#include "nodes/columns/score_metrics.h"

namespace sluice::nodes {

using engine::Range;

namespace {

void require_float(double score, const std::string& column, size_t sample, const engine::MicroBatch& batch) {
  if (std::abs(score) <= static_cast<double>(std::numeric_limits<float>::max())) return;
  throw UserError("column '" + column + "' would be " + real_text(score) + " for " + name_of_sample(batch, sample) +
                      ", and scores go up to 3.4e38",
                  "smaller weights or factors, or smaller scores");
}

}  // namespace

std::vector<float> counted_scores(std::span<const float> scores, const std::vector<bool>& counted, Range samples) {
  std::vector<float> found;
  for (size_t s = samples.begin; s < samples.end; ++s) {
    if (counted[s]) found.push_back(scores[s]);
  }
  return found;
}

void write_scores(engine::MicroBatch& batch, const std::string& column, std::span<const double> scores,
                  engine::MetricsRecorder& metrics) {
  const std::vector<bool> counted = counted_samples(batch);
  const std::vector<size_t> groups = group_of_samples(batch.layout());
  auto written = batch.write(score_column(column)).entries<float>();  // [S]
  std::vector<size_t> groups_of_counted;
  for (size_t s = 0; s < scores.size(); ++s) {
    require_float(scores[s], column, s, batch);
    written[s] = static_cast<float>(scores[s]);
    if (counted[s]) groups_of_counted.push_back(groups[s]);
  }
  record_scores(metrics, column, counted_scores(written, counted, {0, scores.size()}), groups_of_counted);
}

}  // namespace sluice::nodes
