#include "nodes/scorers/scorer.h"

#include <algorithm>

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

ScoredTexts::ScoredTexts(const ScorerParams& params, engine::MicroBatch& batch)
    : texts_(batch.read(params.text_column()).entries<std::string>()),
      scores_(batch.write(params.score_column()).entries<float>()),
      name_(params.score_column().name) {
  const bool by_group = params.scores == ScoredText::kBaseline;
  size_t group = 0;
  for (const engine::Range samples : batch.layout().samples_by_group()) {
    groups_.insert(groups_.end(), by_group ? 1 : samples.size(), group);
    ++group;
  }
}

void ScoredTexts::record(engine::MetricsRecorder& metrics) const {
  for (const float score : scores_) metrics.moments(name_, score);
  for (size_t begin = 0, end = 0; begin < size(); begin = end) {
    while (end < size() && groups_[end] == groups_[begin]) ++end;
    if (end - begin < 2) continue;  // one score alone says nothing
    const auto of_group = scores_.subspan(begin, end - begin);
    metrics.mean(name_ + "_zero_variance", std::ranges::all_of(of_group, [&](float score) { return score == of_group.front(); }));
  }
}

}  // namespace sluice::nodes
