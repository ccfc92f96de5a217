#pragma once

#include <filesystem>
#include <string>

#include "cli/command/command.h"

namespace sluice::cli {

struct InitArguments {
  std::string kind;                        // "grpo", "ppo", "sft", "dpo" or "reward"
  std::string model;                       // a folder, or the id of a model of the Hub
  std::string data;                        // a file, folder or pattern of JSON lines
  std::string prompt_field, answer_field;  // empty: looked for
  std::filesystem::path output;            // empty: standard output
  double memory_gib = 0;                   // 0: of this machine
  bool force = false;                      // also where there is a file
};
/// Writes a pipeline for this model and these data, that fits into this machine, and says on stderr what was chosen and why.
int init_pipeline(const InitArguments& arguments);

/// Adds `init` to the program.
void add_init_command(Command& program);

}  // namespace sluice::cli
