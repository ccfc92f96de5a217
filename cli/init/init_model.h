#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/init/init_data.h"
#include "nodes/models/model_text.h"

namespace sluice::cli {

/// What a pipeline must know of the model that it begins with. No weights are read.
struct InitModel {
  std::filesystem::path folder;
  int64_t parameters = 0;
  int64_t max_positions = 0;
  std::string stored;         // the dtypes of its files: "BF16"
  bool has_template = false;  // for chats
  bool is_half = false;       // its weights are stored in 16 bits
  std::shared_ptr<const nodes::ModelText> text;
};

/// `written`: a folder, or the id of a model of the Hub. Throws UserError for what is no folder of a model.
InitModel look_at_model(const std::string& written);

/// The longest texts of some rows, in tokens of a model.
struct InitLengths {
  int64_t prompt = 0;
  int64_t answer = 0;
  int64_t whole = 0;           // a prompt with what is learned after it; of pairs the longer one
  int64_t shortest_whole = 0;  // and of the shortest row
};

/// How a prompt that is a text comes to the model: as it is, or as a chat, with a suffix.
struct PromptForm {
  bool chats = false;
  std::string suffix;
};

/// Of the first rows. Throws UserError for what the chat template refuses.
InitLengths lengths_of(const InitModel& model, const InitData& data, const InitFields& fields, const PromptForm& form);

}  // namespace sluice::cli
