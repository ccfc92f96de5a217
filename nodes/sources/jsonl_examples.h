#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/model_text.h"
#include "nodes/prompts/conversation.h"
#include "nodes/sources/drawn_rows.h"
#include "nodes/sources/prompt_reader.h"
#include "nodes/sources/row_source.h"

namespace sluice::nodes {

/// Prompts with the completions that a model is to learn, from files of JSON lines or of a JSON array.
///
///   [nodes.examples]
///   type = "jsonl_examples"
///   path = "data/arithmetic.jsonl"  # or one JSON array, a folder, a pattern "data/*.jsonl", an array of them; or Parquet, Arrow
///   weights = [3, 1]               # of an array: rows come in these proportions
///   prompt_field = "prompt"        # prompt_fields, prompt_template: several fields, see PromptFormat
///   completion_field = "completion"
///   chat = true                    # they are the turns of user and assistant, which the model's chat template writes
///   system = "Answer briefly."     # the system message before them; or system_field
///   messages_field = "messages"    # instead of both: conversations, of which the assistant's words are learned
///   model = "actor"                # its tokenizer and chat template are used
///   groups_per_iteration = 64      # examples
///   max_tokens = 256               # the longest example
///   too_long = "refuse"            # "drop": longer ones are left out
///   add_end_of_sequence = true     # the model also learns to stop
///   shuffle = true                 # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                     # 0: goes round without end
///
/// Writes prompt[G], tokens[T]: groups of one sample, whose actions are the tokens of the completion, or of all that the
/// assistant says in a conversation (text/chat/chat_template.h: how that is known). The prompt is tokenised as `generate` does
/// it. Prompt and completion may both be lists of messages, of which the completion is learned. Every example is tokenised once
/// before the run starts; an example that is longer than max_tokens is a UserError that shows its line, or left out. Metric:
/// rows_dropped, the rows that are left out.
struct JsonlExamplesParams {
  std::vector<std::filesystem::path> path;
  std::vector<double> weights;
  std::string prompt_field = "prompt";
  std::vector<std::string> prompt_fields;
  std::string prompt_template;
  std::string completion_field = "completion";
  std::optional<bool> chat;
  std::string system;
  std::string system_field;
  std::string messages_field;
  std::string chat_variables;
  std::filesystem::path tools;
  std::string model;
  int64_t groups_per_iteration = 1;
  int64_t max_tokens = 0;
  TooLong too_long = TooLong::kRefuse;
  bool add_end_of_sequence = true;
  bool shuffle = true;
  int64_t epochs = 0;
};

/// What the rows are as examples. Immutable: const use from many threads.
class ExampleRows {
 public:
  /// `model` outlives it. Texts end with `end_of_sequence`, if there is one.
  ExampleRows(const JsonlExamplesParams& params, const ModelText& model, std::optional<int64_t> end_of_sequence);

  std::vector<data::JsonlField> fields() const;

  /// Of the values of fields(). Throws UserError for what is no example.
  LearnedConversation example(const std::vector<Json>& values) const;
  std::optional<RowCheck::Fault> fault_of(const LearnedConversation& example) const;

  /// Throws what example() throws before it needs the tokenizer.
  void check(const std::vector<Json>& values) const;

  /// The text that is learned to be continued, where it is none that a template writes.
  std::optional<std::string> plain_prompt(const std::vector<Json>& values) const;

 private:
  bool reads_messages() const { return reader_.format().reads_messages(); }
  Answered answer(const std::vector<Json>& values) const;

  JsonlExamplesParams params_;
  const ModelText& model_;
  ChatExtras chat_extras_;
  PromptReader reader_;
  std::optional<int64_t> end_of_sequence_;
};

class JsonlExamples final : public engine::Source {
 public:
  static void describe(engine::Contract<JsonlExamplesParams>& contract);

  JsonlExamples(const JsonlExamplesParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { rows_.record(); }
  bool next_group(engine::Group& group) override;
  void save(engine::StateWriter& state) const override { rows_.save(state); }
  void load(const engine::StateReader& state) override { rows_.load(state); }

 private:
  std::shared_ptr<const ModelText> model_;
  ExampleRows examples_;
  DrawnRows rows_;
};

}  // namespace sluice::nodes
