#pragma once

#include <filesystem>
#include <string>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/epoch_order.h"
#include "nodes/jsonl_reader.h"

namespace sluice::nodes {

/// Prompts and reference answers from a file of one JSON object a line.
///
///   [nodes.prompts]
///   type = "jsonl_prompts"
///   path = "data/arithmetic.jsonl"
///   prompt_field = "prompt"
///   label_field = "label"          # "": the file has no reference answers, label stays empty
///   groups_per_iteration = 32
///   shuffle = true                 # another order in each epoch, fixed by [pipeline] seed
///   epochs = 0                     # 0: goes round without end
///   prefix = "Question: "          # put before each prompt
///   suffix = "\nAnswer: "          # put behind it
///
/// Writes prompt[G], label[G]. The whole file is checked before the run starts (see JsonlReader).
/// Not for files that grow while they are read.
struct JsonlPromptsParams {
  std::filesystem::path path;
  std::string prompt_field = "prompt";
  std::string label_field = "label";
  int64_t groups_per_iteration = 1;
  bool shuffle = true;
  int64_t epochs = 0;
  std::string prefix;
  std::string suffix;
};

class JsonlPrompts final : public engine::Source {
 public:
  static void describe(engine::Contract<JsonlPromptsParams>& contract);

  JsonlPrompts(const JsonlPromptsParams& params, engine::NodeResources& resources);

  bool next_group(engine::Group& group) override;

 private:
  JsonlPromptsParams params_;
  JsonlReader reader_;
  EpochOrder order_;
};

}  // namespace sluice::nodes
