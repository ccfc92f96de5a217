#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/language_model.h"
#include "nodes/row_cursor.h"
#include "nodes/row_source.h"

namespace sluice::nodes {

/// Prompts and reference answers from files of one JSON object a line.
///
///   [nodes.prompts]
///   type = "jsonl_prompts"
///   path = "data/arithmetic.jsonl"  # or a folder, a pattern "data/*.jsonl", an array of them; plain or gzip
///   weights = [3, 1]                # of an array: rows come in these proportions
///   prompt_field = "prompt"
///   label_field = "meta.answer"     # "": the files have no reference answers, label stays empty
///   groups_per_iteration = 32
///   shuffle = true                  # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                      # 0: goes round without end
///   prefix = "Question: "           # put before each prompt
///   suffix = "\nAnswer: "           # put behind it
///   messages_field = "messages"     # instead of prompt_field: conversations, which the model's chat template writes
///   chat_variables = '{"enable_thinking": false}'  # what else that template is told
///   model = "actor"                 # whose chat template writes, and whose tokenizer counts the tokens
///   max_prompt_tokens = 512         # 0: no limit
///   too_long = "drop"               # leave such prompts out; "refuse": they are errors
///
/// Writes prompt[G], label[G], and of conversations messages[G]. All rows are checked before the run starts (see JsonlReader):
/// conversations are rendered, and with max_prompt_tokens prompts are tokenised. Prompts of conversations hold their special
/// tokens: `generate` sees that by the column messages, and adds none. Figures: rows_dropped, the rows that are left out. Not for
/// files that grow while they are read.
struct JsonlPromptsParams {
  std::vector<std::filesystem::path> path;
  std::vector<double> weights;
  std::string prompt_field = "prompt";
  std::string label_field = "label";
  int64_t groups_per_iteration = 1;
  bool shuffle = true;
  int64_t epochs = 0;
  std::string prefix;
  std::string suffix;
  std::string messages_field;
  std::string chat_variables;
  std::string model;
  int64_t max_prompt_tokens = 0;
  TooLong too_long = TooLong::kRefuse;
};

class JsonlPrompts final : public engine::Source {
 public:
  static void describe(engine::Contract<JsonlPromptsParams>& contract);

  JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { check_.record(metrics_); }
  bool next_group(engine::Group& group) override;
  void save(engine::StateWriter& state) const override { cursor_.save(rows_, state); }
  void load(const engine::StateReader& state) override { cursor_.load(rows_, state); }

 private:
  struct Row {
    std::string prompt;
    std::string label;
    std::string messages;  // as JSON; of a conversation
  };

  bool reads_messages() const { return !params_.messages_field.empty(); }
  Row row(data::Dataset::RowId id) const;
  std::optional<RowCheck::Fault> fault_of(data::Dataset::RowId id) const;

  JsonlPromptsParams params_;
  engine::MetricsRecorder* metrics_;
  std::shared_ptr<LanguageModel> model_;  // null: none is needed
  Json chat_variables_;
  data::Dataset rows_;
  RowCursor cursor_;
  RowCheck check_;
};

}  // namespace sluice::nodes
