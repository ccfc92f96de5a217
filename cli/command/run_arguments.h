#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/pipeline_arguments.h"

namespace sluice::cli {

/// What `run` takes, and `launch` and `sweep` hand on to it (cli/command/run_words.h).
struct RunArguments {
  PipelineArguments pipeline;
  std::filesystem::path run_folder;     // empty: runs/NAME-TIME, or runs/NAME where the run may go on
  bool may_go_on = false;               // with what is in the run folder, if there is something
  bool accept_changes = false;          // of the pipeline since then, also those that change results
  std::int64_t show_samples_every = 0;  // two sample texts of every so many iterations; 0: none
};

/// Likewise `resume`.
struct ResumeArguments {
  std::filesystem::path run_folder;
  std::optional<long long> from;  // a checkpoint; nothing: the newest that is intact
  std::vector<std::string> sets;  // KEY=VALUE
  PluginArguments plugins = {};
  bool accept_changes = false;
  std::int64_t show_samples_every = 0;  // as in RunArguments
};

/// The options of `run`, also of `launch`. `resume`: what --resume says.
void take_run(Command& command, RunArguments& into, std::string& resume);

}  // namespace sluice::cli
