#pragma once

#include <cstdint>
#include <string>

#include "cli/init/init_data.h"
#include "cli/init/init_scorer.h"

namespace sluice::cli {

/// What `rlhf-run init` writes pipelines for.
enum class InitKind { kGrpo, kPpo, kSft, kDpo, kReward };

/// All that a pipeline of `rlhf-run init` says. Paths are as the file has them.
struct InitPipeline {
  InitKind kind = InitKind::kGrpo;
  std::string model, data;
  InitFields fields;
  InitScorer scorer;                  // where answers are scored
  bool chats = false;                 // prompts that are texts are turns of the model's template
  bool passes_over_template = false;  // which it has, and texts without a prompt do not need
  bool bfloat16 = false;
  bool lora = false;
  std::string device;  // empty: the CPU
  double learning_rate = 0, critic_learning_rate = 0;
  int64_t iterations = 1;
  int64_t groups = 1;   // prompts, examples or pairs of an iteration
  int64_t samples = 1;  // answers to a prompt
  int64_t max_prompt_tokens = 0, max_new_tokens = 0, max_tokens = 0;
  int64_t tokens_in_flight = 1;
  double memory_gib = 0;  // that the run may take; 0: what the machine has
};

/// What to type to run the file: `run` may be left out where the name ends in .toml.
std::string command_to_run(const std::string& file);

/// The file: one line a table, each with a comment. `file` is what it will be called.
std::string init_text(const InitPipeline& pipeline, const std::string& file);

}  // namespace sluice::cli
