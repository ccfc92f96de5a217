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

/// Finds the reference answer of a label. Immutable: const use from many threads.
class ReferenceAnswers {
 public:
  /// Throws UserError where the pattern is not valid; `where` is how the message calls it.
  ReferenceAnswers(const ExactMatchParams& params, const std::string& where);

  /// As readers of describe_labels(): throws UserError.
  std::string operator()(const std::string& label) const;

 private:
  std::string pattern_;
  AnswerForm form_;
  AnswerFinder answer_;
};

class ExactMatch final : public engine::Node {
 public:
  static void describe(engine::Contract<ExactMatchParams>& contract);

  ExactMatch(const ExactMatchParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  ExactMatchParams params_;
  const std::string node_;
  AnswerFinder in_response_;
  ReferenceAnswers reference_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
