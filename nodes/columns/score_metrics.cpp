#include "nodes/columns/score_metrics.h"

#include <algorithm>

namespace sluice::nodes {

std::string score_metric(const std::string& column, const std::string& what) {
  return "reward/" + column + (what.empty() ? "" : "_" + what);
}

void record_scores(engine::MetricsRecorder& metrics, const std::string& column, std::span<const float> scores,
                   std::span<const size_t> groups) {
  for (const float score : scores) metrics.moments(score_metric(column), score);
  for (size_t begin = 0, end = 0; begin < scores.size(); begin = end) {
    while (end < scores.size() && groups[end] == groups[begin]) ++end;
    if (end - begin < 2) continue;  // one score alone says nothing
    const auto of_group = scores.subspan(begin, end - begin);
    metrics.mean(score_metric(column, "zero_variance"),
                 std::ranges::all_of(of_group, [&](float score) { return score == of_group.front(); }));
  }
}

std::vector<size_t> group_of_samples(const engine::Layout& layout) {
  std::vector<size_t> groups;
  size_t group = 0;
  for (const engine::Range samples : layout.samples_by_group()) groups.insert(groups.end(), samples.size(), group++);
  return groups;
}

}  // namespace sluice::nodes
