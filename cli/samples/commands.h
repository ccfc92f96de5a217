#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "cli/command/command.h"

namespace sluice::cli {

struct SamplesArguments {
  std::filesystem::path run_folder;
  std::string node;        // of type write_jsonl; empty: the first
  std::string iteration;   // a number, or "all"; empty: the latest
  std::string prompt;      // only of prompts with this text; empty: of all
  std::string sort;        // a field, or "length"; empty: as they were recorded, or by score for best and worst
  std::int64_t best = 0;   // so many with the highest; at most one of these three is above 0
  std::int64_t worst = 0;  // with the lowest
  std::int64_t samples = 0;
  bool samples_given = false;  // 0 of them: all
  std::string tokens;          // what they are coloured by: "advantage", "kl", "probability", "none"; empty: what there is
  std::string format = "text";
};
/// Prints samples that a run has recorded.
int show_samples(const SamplesArguments& arguments);

/// Adds `samples` to the program.
void add_samples_command(Command& program);

}  // namespace sluice::cli
