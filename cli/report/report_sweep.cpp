#include "cli/report/report_sweep.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text/shell_word.h"
#include "cli/run_folder/run_folder.h"
#include "cli/sweep/sweep_file.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// Combinations of several sweeps are told apart.
std::vector<ReportedRun> runs_of_sweep(const fs::path& folder, const std::string& prefix) {
  const SweepGrid grid = read_sweep(folder).grid;
  const auto combinations = combinations_of(grid);
  std::vector<ReportedRun> runs;
  for (const SweptRun& run : runs_of(grid)) {
    const fs::path run_folder = folder_of_swept(folder, run);
    if (holds_run(run_folder))
      runs.push_back({.folder = run_folder, .combination = prefix + combination_name(grid, combinations[run.combination])});
  }
  if (runs.empty())
    throw UserError("no run of the sweep in " + folder.string() + " has begun",
                    "begin it: rlhf-run sweep --resume " + shell_word(folder.string()));
  return runs;
}

}  // namespace

std::vector<ReportedRun> reported_runs(const std::vector<fs::path>& folders) {
  std::vector<ReportedRun> runs;
  for (const fs::path& folder : folders) {
    if (holds_sweep(folder))
      std::ranges::move(runs_of_sweep(folder, folders.size() > 1 ? folder.string() + ": " : ""), std::back_inserter(runs));
    else
      runs.push_back({.folder = folder, .combination = {}});
  }
  return runs;
}

}  // namespace sluice::cli
