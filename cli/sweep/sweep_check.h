#pragma once

#include <string>
#include <vector>

#include "cli/sweep/commands.h"
#include "cli/sweep/sweep_file.h"

namespace sluice::cli {

/// A sweep of which every run was proven.
struct CheckedSweep {
  SweepFile file;
  std::vector<SweptRun> runs;
  std::vector<std::int64_t> iterations;  // of each run, [pipeline] iterations
  std::string name;                      // of the pipeline of the first run
  int most_ranks = 1;                    // of any run
};

/// Proves the pipeline of each run of the grid, for the cores that a run has beside `parallel` - 1 others, and that the memory
/// holds so many at once. Throws one UserError with all problems, each with the runs that have it.
CheckedSweep check_sweep(const SweepArguments& arguments, const SweepGrid& grid);

/// What changed in the pipelines of a sweep since it began; of what several runs have, one line.
struct SweepChanges {
  std::vector<std::string> harmless;  // results are the same
  std::vector<std::string> others;
};
SweepChanges pipeline_changes_of(const SweepFile& before, const CheckedSweep& now);

}  // namespace sluice::cli
