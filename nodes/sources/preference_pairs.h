#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/preference_row.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/model_text.h"
#include "nodes/prompts/conversation.h"
#include "nodes/sources/drawn_rows.h"
#include "nodes/sources/prompt_reader.h"
#include "nodes/sources/row_source.h"

namespace sluice::nodes {

/// Prompts with a better and a worse completion, from files of JSON lines or of a JSON array.
///
///   [nodes.pairs]
///   type = "preference_pairs"
///   path = "data/preferences.jsonl" # or one JSON array, a folder, a pattern "data/*.jsonl", an array of them; or Parquet, Arrow
///   weights = [3, 1]               # of an array: rows come in these proportions
///   prompt_field = "prompt"        # "": none; the common beginning of both completions is the prompt
///                                  # prompt_fields, prompt_template: several fields, see PromptFormat
///   chosen_field = "chosen"
///   rejected_field = "rejected"
///   ranked_fields = ["best", "second", "third"]   # instead of these two: any number of completions, the best first
///   margin_field = "margin"        # optional: a number, see train_reward
///   chat = true                    # texts are turns of user and assistant, which the model's chat template writes
///   system = "Answer briefly."     # the system message before them; or system_field
///   model = "actor"                # its tokenizer and chat template are used
///   groups_per_iteration = 64      # pairs
///   max_tokens = 256               # the longest of the completions, with its prompt
///   too_long = "refuse"            # "drop": pairs with a longer one are left out
///   add_end_of_sequence = true     # after completions that are strings
///   shuffle = true                 # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                     # 0: goes round without end
///
/// Completions are strings or lists of messages (see data/preference_row.h); a pair of messages is written by the chat template,
/// and its actions are what the assistant says after the prompt. Writes prompt[G], tokens[T], score[S]: groups of two samples,
/// the better one with score 1 and then the worse one with score 0, whose actions are the tokens of the completions; with
/// margin_field margin[G] too. With ranked_fields groups of so many samples, with scores down to 0; rows need a prompt then, and
/// may lack all but the first two of them. If the prompt is not of their form, it is what all of them have in common. Every pair
/// is tokenised once before the run starts; what does not fit is a UserError that shows its line. Metric: rows_dropped, the pairs
/// that are left out.
struct PreferencePairsParams {
  std::vector<std::filesystem::path> path;
  std::vector<double> weights;
  std::string prompt_field = "prompt";
  std::vector<std::string> prompt_fields;
  std::string prompt_template;
  std::string chosen_field = "chosen";
  std::string rejected_field = "rejected";
  std::vector<std::string> ranked_fields;
  std::string margin_field;
  std::optional<bool> chat;
  std::string system;
  std::string system_field;
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

/// What the rows are as pairs. Immutable: const use from many threads.
class PairRows {
 public:
  /// `model` outlives it. Completions that are texts end with `end_of_sequence`, if there is one.
  PairRows(const PreferencePairsParams& params, const ModelText& model, std::optional<int64_t> end_of_sequence);

  /// Those of the completions come first.
  std::vector<data::JsonlField> fields() const;
  size_t completion_fields() const { return is_ranked() ? params_.ranked_fields.size() : 2; }

  struct Pair {
    std::vector<size_t> fields;                    // of each completion, its place in fields()
    std::vector<LearnedConversation> completions;  // the best first; two, or as many as the row has of ranked_fields
    float margin = 0;
  };

  /// Of the values of fields(). Throws UserError for what is no pair.
  Pair pair(const std::vector<Json>& values) const;
  std::optional<RowCheck::Fault> fault_of(const Pair& pair) const;

  /// Throws what pair() throws before it needs the tokenizer.
  void check(const std::vector<Json>& values) const;

  /// The prompt, where it is a text that no template writes.
  std::optional<std::string> plain_prompt(const std::vector<Json>& values) const;

 private:
  bool is_ranked() const { return !params_.ranked_fields.empty(); }
  // Of the best completion and another, by its place in fields().
  data::PreferencePair row(const std::vector<Json>& values, size_t other) const;

  // Places of the completions that are worse than the best.
  std::vector<size_t> others(const std::vector<Json>& values) const;

  std::string name_of_completion(size_t place) const;
  LearnedConversation learned(const Json& prompt, const Json& completion) const;

  PreferencePairsParams params_;
  const ModelText& model_;
  ChatExtras chat_extras_;
  PromptReader reader_;
  std::optional<int64_t> end_of_sequence_;
};

class PreferencePairs final : public engine::Source {
 public:
  static void describe(engine::Contract<PreferencePairsParams>& contract);

  PreferencePairs(const PreferencePairsParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { rows_.record(); }
  bool next_group(engine::Group& group) override;
  void save(engine::StateWriter& state) const override { rows_.save(state); }
  void load(const engine::StateReader& state) override { rows_.load(state); }

 private:
  bool has_margin_;
  std::shared_ptr<const ModelText> model_;
  PairRows pairs_;
  DrawnRows rows_;
};

}  // namespace sluice::nodes
