#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/math/choice_finder.h"
#include "nodes/scorers/scorer.h"
#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// Scores 1 where the response chooses the letter of the label, else 0.
///
///   [nodes.score]
///   type = "multiple_choice"
///   inputs = ["generate"]
///   choices = 4            # A to D
///
/// And the parameters of every scorer (scorer.h), on_error = "value" and error_value (failed_samples.h). A label is a letter
/// (`B`, `b`, `(B)`), or begins with one in front of the text of the choice: `(B) Paris`, `B. Paris`, `B) Paris`, `B: Paris`.
/// What a response chooses is, of the following, the first that is there:
///
/// 1. all of it, where it is a letter alone: `B`, `(b).`, `**B**`;
/// 2. the last \boxed{...}, read like a label; a box with anything else in it chooses nothing;
/// 3. the letter that its sentences settle on, as ChoiceFinder says: `the answer is B`, `B is correct`, else the last one that
///    stands alone and is not ruled out. Of `A or B` none is chosen.
///
/// Letters beyond `choices` are not seen. Emphasis, quotes, dollar signs, brackets and \text{} around a letter do not matter.
/// Reads response[S], label[G]; writes score[S]  (S: samples, G: groups). A response that chooses nothing scores 0, and so does
/// one that is not UTF-8. A label without a letter is a UserError that names the group.
struct MultipleChoiceParams : ScorerParams, OnErrorParams {
  MultipleChoiceParams() { on_error = OnError::kValue; }

  int64_t choices = 4;
};

/// Finds the letter of a label, as a capital. Immutable: const use from many threads.
class LabelLetters {
 public:
  explicit LabelLetters(int64_t choices);

  /// As readers of describe_labels(): throws UserError.
  char operator()(const std::string& label) const;

  /// Nothing where there is none, or where the text is not UTF-8.
  std::optional<char> find(std::string_view text) const;

  /// Of a text that is nothing but the letter, emphasis and the like aside; it must be UTF-8.
  std::optional<char> find_alone(std::string_view text) const;

 private:
  int64_t choices_;
  text::Regex alone_;
  text::Regex leading_;
};

class MultipleChoice final : public engine::Node {
 public:
  static void describe(engine::Contract<MultipleChoiceParams>& contract);

  MultipleChoice(const MultipleChoiceParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  std::optional<char> choice_of_response(std::string_view response) const;

  const MultipleChoiceParams params_;
  const std::string node_;
  const LabelLetters of_label_;
  const ChoiceFinder in_sentences_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
