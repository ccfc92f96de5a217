#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/model_text.h"
#include "nodes/sources/drawn_rows.h"
#include "nodes/sources/prompt_reader.h"
#include "nodes/sources/row_source.h"
#include "nodes/sources/taken_prompts.h"

namespace sluice::nodes {

/// Prompts and reference answers from files of JSON lines or of a JSON array.
///
///   [nodes.prompts]
///   type = "jsonl_prompts"
///   path = "data/arithmetic.jsonl"  # or one JSON array, a folder, a pattern "data/*.jsonl", an array of them; or Parquet, Arrow
///   weights = [3, 1]                # of an array: rows come in these proportions
///   prompt_field = "prompt"         # prompt_fields, prompt_template: several fields, see PromptFormat
///   label_field = "meta.answer"     # "": the files have no reference answers, label stays empty
///   columns = ["domain"]            # other fields, each a text column of its name
///   groups_per_iteration = 32
///   shuffle = true                  # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                      # 0: goes round without end
///   prefix = "Question: "           # put before each prompt, with chat = true within the user's turn
///   suffix = "\nAnswer: "           # put after it, likewise
///   chat = true                     # the prompt is the user's turn, which the model's chat template writes
///   system = "Answer briefly."      # the system message before it; or system_field
///   messages_field = "messages"     # instead of prompt_field and chat: conversations, which that template writes too
///   chat_variables = '{"enable_thinking": false}'  # what else that template is told
///   tools = "tools.json"            # a list of tools that it shows
///   model = "actor"                 # whose chat template writes, and whose tokenizer counts the tokens
///   max_prompt_tokens = 512         # 0: no limit
///   too_long = "drop"               # leave such prompts out; "refuse": they are errors
///
/// Writes prompt[G], label[G] and `columns`[G]; with chat or messages_field also messages[G], the conversation as JSON. What a
/// chat template writes holds its special tokens, which `generate` sees by that column: it adds none. prefix and suffix of a
/// conversation stand around what the template writes.
///
/// All rows are checked before the run starts (see JsonlReader): conversations are rendered, and prompts that may be longer than
/// max_prompt_tokens, here or of the rollout, are tokenised. A prompt that the rollout would not take, and a value that a node
/// which reads one of `columns` does not know, are errors of their rows. Metric: rows_dropped, the rows that are left out. Not
/// for files that grow while they are read.
struct JsonlPromptsParams {
  std::vector<std::filesystem::path> path;
  std::vector<double> weights;
  std::string prompt_field = "prompt";
  std::vector<std::string> prompt_fields;
  std::string prompt_template;
  std::string label_field = "label";
  std::vector<std::string> columns;
  int64_t groups_per_iteration = 1;
  bool shuffle = true;
  int64_t epochs = 0;
  std::string prefix;
  std::string suffix;
  std::optional<bool> chat;
  std::string system;
  std::string system_field;
  std::string messages_field;
  std::string chat_variables;
  std::filesystem::path tools;
  std::string model;
  int64_t max_prompt_tokens = 0;
  TooLong too_long = TooLong::kRefuse;
};

/// What the rows are as prompts. Immutable: const use from many threads.
class PromptRows {
 public:
  /// `model`: null where none is named. `known`: of `columns`, by nodes that read them. `limit`: of the rollout that takes the
  /// prompts; none: nothing is known of it.
  PromptRows(const JsonlPromptsParams& params, std::shared_ptr<const ModelText> model, std::vector<engine::TextCheck> checks,
             std::optional<engine::PromptLimit> limit);

  std::vector<data::JsonlField> fields() const;
  const std::vector<std::string>& columns() const { return params_.columns; }
  bool has_labels() const { return !params_.label_field.empty(); }

  struct Prompt {
    std::string text;
    std::string label;
    Json messages;  // null: it is no conversation
    std::vector<std::string> columns;
  };

  /// Of the values of fields(). Throws UserError for what is no prompt.
  Prompt prompt(const std::vector<Json>& values) const;

  /// Whether rows may have faults.
  bool checks() const {
    return taken_ || params_.max_prompt_tokens > 0 || prompt_format(params_).uses_template() || !checks_.empty();
  }

  /// A text that a node cannot use, a prompt of more than max_prompt_tokens, or one that the rollout does not take.
  std::optional<RowCheck::Fault> fault_of(const Prompt& prompt) const;

  /// Throws UserError where the rollout would leave out all of `rows`, each longer than its limit.
  void refuse_if_all_are_left_out(const data::Dataset& rows) const;

  /// Throws UserError for a text that a node cannot use. Needs no tokens.
  void look_at_texts(const Prompt& prompt) const;

 private:
  std::optional<RowCheck::Fault> longer_than_allowed(const Prompt& prompt) const;

  JsonlPromptsParams params_;
  std::shared_ptr<const ModelText> model_;
  ChatExtras chat_extras_;
  PromptReader reader_;
  std::vector<engine::TextCheck> checks_;
  std::optional<TakenPrompts> taken_;
};

class JsonlPrompts final : public engine::Source {
 public:
  static void describe(engine::Contract<JsonlPromptsParams>& contract);

  JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { rows_.record(); }
  bool next_group(engine::Group& group) override;
  void save(engine::StateWriter& state) const override { rows_.save(state); }
  void load(const engine::StateReader& state) override { rows_.load(state); }

 private:
  PromptRows prompts_;
  DrawnRows rows_;
};

}  // namespace sluice::nodes
