#include "nodes/scorers/scorer.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"
#include "nodes/scorers/answer_text.h"

namespace sluice::nodes {

using engine::ColumnSpec;
using engine::DType;
using engine::Extent;

ColumnSpec ScorerParams::text_column() const {
  return scores == ScoredText::kBaseline ? columns::kBaselineResponse.spec() : columns::kResponse.spec();
}

ColumnSpec ScorerParams::score_column() const {
  ColumnSpec column = scores == ScoredText::kBaseline ? columns::kBaselineScore.spec() : columns::kScore.spec();
  if (!writes.empty()) column.name = writes;
  return column;
}

void check_label(const std::string& label) {
  if (!trim(label).empty()) return;
  throw UserError("is blank, so no response could match it",
                  "let the source read reference answers (label_field), or use another scorer");
}

void refuse_label(const std::string& label, int64_t group, const UserError& error) {
  const Problem& problem = error.problems().front();
  throw UserError("the label of group " + std::to_string(group) + ", " + shown_text(label) + ", " + problem.message,
                  problem.help);
}

void check_pattern(const std::string& key, const std::string& pattern, engine::Findings& findings) {
  try {
    AnswerFinder(pattern, key);
  } catch (const UserError& error) {
    findings.error(key, error);
  }
}

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

ScoredTexts::ScoredTexts(const ScorerParams& params, engine::MicroBatch& batch)
    : texts_(batch.read(params.text_column()).entries<std::string>()),
      scores_(batch.write(params.score_column()).entries<float>()),
      groups_(group_of_samples(batch.layout())),
      name_(params.score_column().name) {
  if (params.scores != ScoredText::kBaseline) return;
  groups_.resize(batch.groups());
  std::iota(groups_.begin(), groups_.end(), size_t{0});
}

void ScoredTexts::record(engine::MetricsRecorder& metrics) const {
  std::vector<float> scores;
  std::vector<size_t> groups;
  for (size_t i = 0; i < scores_.size(); ++i) {
    if (left_out_.contains(i)) continue;
    scores.push_back(scores_[i]), groups.push_back(groups_[i]);
  }
  record_scores(metrics, name_, scores, groups);
}

void ScoredTexts::record_answered(engine::MetricsRecorder& metrics, size_t answered) const {
  const auto texts = static_cast<double>(size());
  metrics.mean(metric("answered"), static_cast<double>(answered) / texts, texts);
}

}  // namespace sluice::nodes
