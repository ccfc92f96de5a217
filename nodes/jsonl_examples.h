#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/epoch_order.h"
#include "nodes/jsonl_reader.h"
#include "nodes/language_model.h"

namespace sluice::nodes {

/// Prompts with the completions that a model is to learn, from a file of one JSON object a line.
///
///   [nodes.examples]
///   type = "jsonl_examples"
///   path = "data/arithmetic.jsonl"
///   prompt_field = "prompt"
///   completion_field = "completion"
///   model = "actor"                # its tokenizer is used
///   groups_per_iteration = 64      # examples
///   max_tokens = 256               # the longest example
///   add_end_of_sequence = true     # the model also learns to stop
///   shuffle = true                 # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                     # 0: goes round without end
///
/// Writes prompt[G], tokens[T]: groups of one sample, whose actions are the tokens of the completion. The prompt is tokenised as
/// `generate` does it. Every example is tokenised once before the run starts; an example that is longer than max_tokens is a
/// UserError that shows its line.
struct JsonlExamplesParams {
  std::filesystem::path path;
  std::string prompt_field = "prompt";
  std::string completion_field = "completion";
  std::string model;
  int64_t groups_per_iteration = 1;
  int64_t max_tokens = 0;
  bool add_end_of_sequence = true;
  bool shuffle = true;
  int64_t epochs = 0;
};

class JsonlExamples final : public engine::Source {
 public:
  static void describe(engine::Contract<JsonlExamplesParams>& contract);

  JsonlExamples(const JsonlExamplesParams& params, engine::NodeResources& resources);

  bool next_group(engine::Group& group) override;

 private:
  struct Example {
    std::string prompt;
    std::vector<int64_t> tokens;  // prompt, then completion
    int64_t actions = 0;          // tokens of the completion
  };

  Example example(size_t row) const;
  void check_examples() const;

  JsonlExamplesParams params_;
  std::shared_ptr<LanguageModel> model_;
  std::optional<int64_t> end_of_sequence_;
  JsonlReader reader_;
  EpochOrder order_;
};

}  // namespace sluice::nodes
