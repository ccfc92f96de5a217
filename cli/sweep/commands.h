#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command/run_arguments.h"

namespace sluice::cli {

/// Runs of one pipeline with several values of its keys, and seeds.
struct SweepArguments {
  RunArguments run;                 // a set may have several values (cli/sweep/sweep_grid.h); the run folder is that of the sweep
  std::vector<std::int64_t> seeds;  // none: that of the pipeline
  bool goes_on = false;             // with what is in that folder, which says all of the pipeline but its plugins
  int parallel = 1;                 // so many runs at a time
  bool dry_run = false;             // only say what would be run
};
/// Runs all that are not finished, each by `rlhf-run run` in a folder of its own, and prints their table. The exit code is that
/// of the first that ended badly.
int sweep_pipeline(const SweepArguments& arguments);

struct SweepTableArguments {
  std::filesystem::path folder;      // of a sweep, which may go on
  std::vector<std::string> metrics;  // none: those that matter
  std::string best;                  // "highest" or "lowest", of the first one; empty: by its name
  std::string format = "text";       // or "json" or "csv"
};
/// Prints a row for each combination: mean and standard deviation over its finished runs.
int print_sweep_table(const SweepTableArguments& arguments);

/// Adds `sweep` to the program.
void add_sweep_command(Command& program);

}  // namespace sluice::cli
