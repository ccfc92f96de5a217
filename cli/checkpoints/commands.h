#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/command/command.h"

namespace sluice::cli {

/// What is said of the checkpoints of a run folder. `iterations`: only that one.
struct CheckpointsArguments {
  std::filesystem::path run_folder;
  std::optional<long long> iterations;
  std::string format = "text";
  std::optional<long long> keep_last;  // prune; those that are not there: what the run's [checkpoint] says
  std::optional<std::string> keep_best;
  std::optional<std::string> best;              // "highest" or "lowest"
  std::optional<std::filesystem::path> folder;  // prune; [checkpoint] folder, where they lie outside of the run folder
  bool dry_run = false;
  std::string model;  // export; empty: the only one
  std::filesystem::path target;
  std::string dtype;       // empty: that of the files
  std::string save;        // of a model with adapters "merged" or "adapter"; empty: all that the checkpoint has
  std::string license;     // an identifier of the Hub; empty: that of the base model
  std::string base_model;  // an id of the Hub; empty: that of the folder that was trained, if it is the Hub's
};
/// One line each, or JSON: iterations, when it was saved, a metric, size, intact or what is damaged.
int list_checkpoints(const CheckpointsArguments& arguments);
/// Reads every byte. 1 when something is damaged; it is named by file and tensor.
int verify_checkpoints(const CheckpointsArguments& arguments);
/// Removes what need not be kept. Damaged ones stay, and are named.
int prune_checkpoints(const CheckpointsArguments& arguments);
/// Writes one model of a checkpoint as a Hugging Face folder, with a model card and generation_config.json.
int export_checkpoint(const CheckpointsArguments& arguments);

/// Adds `checkpoints` and its subcommands to the program.
void add_checkpoint_commands(Command& program);

}  // namespace sluice::cli
