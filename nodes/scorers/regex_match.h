#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/scorer.h"
#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// How much of a text a regular expression must match.
enum class MatchExtent { kSearch, kWhole };

constexpr auto enum_names(MatchExtent) {
  return std::array{std::pair{MatchExtent::kSearch, "search"}, std::pair{MatchExtent::kWhole, "whole"}};
}

/// Scores 1 where the response matches a regular expression, else 0: a reward for a format.
///
///   [nodes.format]
///   type = "regex_match"
///   inputs = ["generate"]
///   pattern = '<think>.*</think>\s*<answer>.*</answer>\s*'   # Oniguruma
///   match = "whole"                  # all of the response; "search": any part of it
///   dot_matches_newline = true       # else . is any character but the newline
///   writes = "score_format"          # beside another scorer; combine_scores adds the two
///
/// And the parameters of every scorer (scorer.h), on_error = "value" and error_value (failed_samples.h). ^ and $ are the ends of
/// a line, \A and \z those of the text. Reads response[S]; writes score[S]  (S: samples). A response that is not UTF-8 scores 0.
/// A response on which the pattern backtracks without bound cannot be scored: see on_error.
struct RegexMatchParams : ScorerParams, OnErrorParams {
  RegexMatchParams() { on_error = OnError::kValue; }

  std::string pattern;
  MatchExtent match = MatchExtent::kSearch;
  bool dot_matches_newline = false;
};

class RegexMatch final : public engine::Node {
 public:
  static void describe(engine::Contract<RegexMatchParams>& contract);

  RegexMatch(const RegexMatchParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  const RegexMatchParams params_;
  const std::string node_;
  const text::Regex regex_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
