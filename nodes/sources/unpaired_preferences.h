#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodes/sources/jsonl_examples.h"

namespace sluice::nodes {

/// Prompts with one completion each, which is desirable or not, from files of JSON lines or of a JSON array. What train_kto
/// learns from.
///
///   [nodes.rows]
///   type = "unpaired_preferences"
///   path = "data/labels.jsonl"     # and all other keys of jsonl_examples, but for messages_field
///   prompt_field = "prompt"
///   completion_field = "completion"
///   label_field = "label"          # true, false, 1 or 0
///   model = "actor"
///   groups_per_iteration = 64      # rows, two at least
///   max_tokens = 256
///
/// Writes prompt[G], tokens[T], score[S]: groups of two samples. The first is the row, with score 1 (desirable) or 0. The second,
/// with score 0, is its prompt with the completion of the row after it in the iteration, and for the last row with that of the
/// first: a mismatched one, from which train_kto estimates how far the policy is from its reference (as TRL's KTOTrainer, which
/// shifts within a batch of a process). So the completions of the two are the same, paired otherwise; a mismatched sample that
/// would be longer than max_tokens is cut off there. Where a row is a conversation, the assistant's words in its completion are
/// the actions. Every row is tokenised once before the run starts, as jsonl_examples does it. Metric: rows_dropped, the rows that
/// are left out.
struct UnpairedPreferencesParams : JsonlExamplesParams {
  std::string label_field = "label";
};

/// What the rows are. Immutable: const use from many threads.
class LabelledRows {
 public:
  /// `model` outlives it. Texts end with `end_of_sequence`, if there is one.
  LabelledRows(const UnpairedPreferencesParams& params, const ModelText& model, std::optional<int64_t> end_of_sequence)
      : examples_(params, model, end_of_sequence), label_field_(params.label_field), max_tokens_(params.max_tokens) {}

  std::vector<data::JsonlField> fields() const;

  /// Of the values of fields(): what jsonl_examples makes of the row, and whether that is desirable.
  const ExampleRows& examples() const { return examples_; }
  static std::vector<Json> example(const std::vector<Json>& values) { return {values.begin(), values.end() - 1}; }
  static bool is_desirable(const std::vector<Json>& values) { return values.back() == true || values.back() == 1; }

  /// What is wrong with a row. `first` is the first of all: they are all texts or all conversations, since each may get the
  /// completion of any other. Throws UserError for what is no example.
  std::optional<RowCheck::Fault> fault_of(const std::vector<Json>& values, const std::vector<Json>& first) const;

  /// The prompt of one row with the completion of another, of which at least one action is left.
  LearnedConversation mismatched(const std::vector<Json>& prompt, const std::vector<Json>& completion) const;

 private:
  ExampleRows examples_;
  std::string label_field_;
  int64_t max_tokens_;
};

class UnpairedPreferences final : public engine::Source {
 public:
  static void describe(engine::Contract<UnpairedPreferencesParams>& contract);

  UnpairedPreferences(const UnpairedPreferencesParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { rows_.record(); }
  bool next_group(engine::Group& group) override;
  void save(engine::StateWriter& state) const override { rows_.save(state); }
  void load(const engine::StateReader& state) override { rows_.load(state); }

 private:
  // The row whose completion is the mismatched one of a group.
  std::vector<Json> other_of(int64_t group);

  int64_t groups_per_iteration_;
  std::shared_ptr<const ModelText> model_;
  LabelledRows labelled_;
  DrawnRows rows_;
};

}  // namespace sluice::nodes
