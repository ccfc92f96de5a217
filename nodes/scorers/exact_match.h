#pragma once

#include <optional>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/answer_text.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// Scores 1 where the response is the reference answer, else 0.
///
///   [nodes.score]
///   type = "exact_match"
///   inputs = ["generate"]
///   extract = '####\s*(.+)'   # regular expression (Oniguruma); group 1 of its last match is the answer; "": the whole text
///   label_extract = ""        # the same for the label; default: as extract
///   normalize = "number"      # "none", "text"; what counts as equal, see AnswerForm
///
/// And the parameters of every scorer (scorer.h), on_error = "value" and error_value (failed_samples.h). Reads response[S],
/// label[G]; writes score[S]  (S: samples, G: groups). A response without an answer scores 0. A label without one is a UserError
/// that names the group: nothing could ever match it.
struct ExactMatchParams : ScorerParams, OnErrorParams {
  ExactMatchParams() { on_error = OnError::kValue; }

  std::string extract;
  std::optional<std::string> label_extract;
  AnswerForm normalize = AnswerForm::kNone;
};

class ExactMatch final : public engine::Node {
 public:
  static void describe(engine::Contract<ExactMatchParams>& contract);

  ExactMatch(const ExactMatchParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  std::string reference_answer(const std::string& label, int64_t group) const;

  ExactMatchParams params_;
  const std::string node_;
  AnswerFinder in_response_;
  AnswerFinder in_label_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
