#include "nodes/scorers/scorer.h"

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
