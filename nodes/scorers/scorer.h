#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/columns.h"

namespace sluice::nodes {

/// Which texts a scorer scores.
enum class ScoredText {
  kResponse,  // those that were sampled: a score a sample
  kBaseline,  // the likeliest one of each prompt (generate, baseline = true): a score a group
};

constexpr auto enum_names(ScoredText) {
  return std::array{std::pair{ScoredText::kResponse, "response"}, std::pair{ScoredText::kBaseline, "baseline"}};
}

/// What every scorer of texts has beside its own parameters, which derive from it:
///
///   scores = "response"    # "baseline": the text of column baseline_response, a score for each group
///   writes = "score"       # the column's name; by default score, or baseline_score
struct ScorerParams {
  ScoredText scores = ScoredText::kResponse;
  std::string writes;

  engine::ColumnSpec text_column() const;
  engine::ColumnSpec score_column() const;
};

/// Declares the parameters, the columns of texts and scores, and the figures of record_scores().
template <class P>
void describe_scorer(engine::Contract<P>& c);

/// The texts of a micro-batch that are to be scored, and the places of their scores. A view: valid during `process`.
class ScoredTexts {
 public:
  ScoredTexts(const ScorerParams& params, engine::MicroBatch& batch);

  size_t size() const { return texts_.size(); }
  const std::string& text(size_t i) const { return texts_[i]; }
  size_t group_of(size_t i) const { return groups_[i]; }  // of the micro-batch
  float& score(size_t i) { return scores_[i]; }

  /// Records NAME_mean and NAME_std of the scores in column NAME, and, of groups of several samples, NAME_zero_variance: the
  /// share of the groups all of whose scores are equal.
  void record(engine::MetricsRecorder& metrics) const;

 private:
  std::span<const std::string> texts_;
  std::span<float> scores_;
  std::vector<size_t> groups_;
  std::string name_;
};

template <class P>
void describe_scorer(engine::Contract<P>& c) {
  c.param("scores", &P::scores).doc("which texts: response: those that were sampled, baseline: the likeliest one of each prompt");
  c.param("writes", &P::writes).doc("the column of the scores; empty: score, or baseline_score");
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.reads.push_back(params.text_column());
    needs.writes.push_back(params.score_column());
  });
  c.metric("score_mean", "mean of the scores; of another column than score, its name stands for score");
  c.metric("score_std", "standard deviation of the score over the samples");
  c.metric("score_zero_variance", "share of the groups all of whose samples have the same score");
}

}  // namespace sluice::nodes
