#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/pipeline_arguments.h"

namespace sluice::cli {

struct SimulateArguments {
  PipelineArguments pipeline;
  std::vector<std::string> what_ifs;    // KEY=VALUE or several, each a variant of its own
  std::filesystem::path costs;          // a run folder or a file; empty: estimated
  double gflops = 20;                   // of a core, for the estimate
  std::optional<double> guesses_right;  // of tokens that are guessed; none: as it was measured
  long long iterations = 0;             // 0: what the pipeline says
  std::filesystem::path trace;          // empty: none
  std::string format = "text";
};
/// Runs a pipeline on a virtual clock. 1 when a variant would stall.
int simulate_pipeline(const SimulateArguments& arguments);

/// Adds `simulate` to the program.
void add_simulate_command(Command& program);

}  // namespace sluice::cli
