#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/process/machine.h"
#include "base/process/program_path.h"
#include "base/text/printable.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/command/run_words.h"
#include "cli/process/exit_codes.h"
#include "cli/process/run_signals.h"
#include "cli/process/started_once.h"
#include "cli/run_folder/run_folder.h"
#include "cli/run_folder/run_lock.h"
#include "cli/sweep/commands.h"
#include "cli/sweep/sweep_check.h"
#include "cli/sweep/sweep_file.h"
#include "cli/sweep/sweep_processes.h"
#include "cli/sweep/swept_state.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

SweepGrid grid_of(const SweepArguments& arguments) {
  Problems problems;
  SweepGrid grid = read_grid(arguments.run.pipeline.sets, arguments.seeds, problems);
  if (!problems.empty()) throw UserError(problems);
  return grid;
}

void refuse_changes(const fs::path& folder, const std::vector<std::string>& changes, std::string help) {
  if (changes.empty()) return;
  throw UserError(Problem{.where = {},
                          .message = "the sweep in " + folder.string() + " is another one",
                          .caret = {},
                          .notes = changes,
                          .help = std::move(help)});
}

// Whether a sweep in its folder is the one that is to go on. Nothing: there is none.
void compare_with_what_is_there(const SweepArguments& arguments, const CheckedSweep& sweep) {
  const fs::path& folder = arguments.run.run_folder;
  const SweepFile before = read_sweep(folder);
  refuse_changes(
      folder, grid_changes(before.grid, sweep.file.grid),
      "go on with it as it is: rlhf-run sweep --resume " + shell_word(folder.string()) + "; or name another folder with -o");
  const SweepChanges changes = pipeline_changes_of(before, sweep);
  if (!arguments.run.accept_changes)
    refuse_changes(
        folder, changes.others,
        "take the pipeline back to what it was, name another folder with -o, or let the runs that are not finished go on all "
        "the same with --accept-changes");
  for (const std::string& change : changes.harmless) std::printf("going on with %s\n", printable(change).c_str());
  for (const std::string& change : changes.others)
    std::printf("going on with %s (accepted: results change)\n", printable(change).c_str());
}

void refuse_folder_of_another(const fs::path& folder, const std::vector<SweptRun>& runs) {
  const auto is_taken = [&](const SweptRun& run) { return is_there(folder / run.name); };
  const auto taken = std::ranges::find_if(runs, is_taken);
  const std::string what = holds_run(folder)     ? "already holds a run"
                           : taken != runs.end() ? "holds no sweep, but already has " + taken->name
                                                 : std::string();
  if (!what.empty()) throw UserError("the folder " + folder.string() + " " + what, "name another one with -o");
}

std::vector<SweepProcess> processes_of(const SweepArguments& arguments, const CheckedSweep& sweep) {
  std::vector<SweepProcess> processes;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    RunArguments run = arguments.run;
    run.run_folder = folder_of_swept(arguments.run.run_folder, sweep.runs[i]);
    if (state_of_run(run.run_folder).is_finished(sweep.iterations[i])) continue;
    run.pipeline.sets = sweep.runs[i].sets;
    run.may_go_on = true;
    SweepProcess process{.name = sweep.runs[i].name, .number = i + 1, .words = words_of(run)};
    process.words.insert(process.words.begin(), program_path().string());
    processes.push_back(std::move(process));
  }
  return processes;
}

// "6 runs in runs/ppo-sweep: 2 combinations, 3 seeds; at most 2 at a time; 1 is finished"
std::string total_text(const SweepArguments& arguments, const CheckedSweep& sweep, size_t finished) {
  const auto count = [](size_t number) { return static_cast<int64_t>(number); };
  const SweepGrid& grid = sweep.file.grid;
  std::string text = plural(count(sweep.runs.size()), "run") + " in " + printable(arguments.run.run_folder.string()) + ": ";
  text += plural(count(combinations_of(grid).size()), "combination");
  if (!grid.seeds.empty()) text += ", " + plural(count(grid.seeds.size()), "seed");
  if (arguments.parallel > 1) text += "; at most " + std::to_string(arguments.parallel) + " at a time";
  if (finished > 0) text += "; " + std::to_string(finished) + (finished == 1 ? " is finished" : " are finished");
  return text + "\n";
}

void print_names(const CheckedSweep& sweep, const std::vector<SweepProcess>& left) {
  for (const SweptRun& run : sweep.runs) {
    const bool is_left = std::ranges::find(left, run.name, &SweepProcess::name) != left.end();
    std::printf("  %s%s\n", printable(run.name).c_str(), is_left ? "" : "   (finished)");
  }
}

// A single run shares its cores with none.
void warn_of_shared_cores(int at_once, int ranks) {
  const auto cores = available_cores();
  if (at_once == 1 || at_once * ranks <= cores) return;
  const std::string of_ranks = ranks == 1 ? "" : ", of " + std::to_string(ranks) + " ranks each,";
  std::fprintf(stderr, "warning: %d runs at a time%s share %s: each waits for the others\n\n", at_once, of_ranks.c_str(),
               plural(cores, "core").c_str());
}

std::string how_to_go_on_with(const SweepArguments& arguments) {
  return "rlhf-run sweep --resume " + printable(shell_word(arguments.run.run_folder.string())) +
         (arguments.parallel > 1 ? " --parallel " + std::to_string(arguments.parallel) : "");
}

int say_how_it_ended(const SweepArguments& arguments, const CheckedSweep& sweep, const SweepOutcome& outcome) {
  const size_t left = processes_of(arguments, sweep).size();
  std::fflush(stdout);
  if (!outcome.failed.empty()) {
    std::fprintf(stderr, "error: %s of the sweep failed\n", plural(static_cast<int64_t>(outcome.failed.size()), "run").c_str());
    for (const std::string& failed : outcome.failed) std::fprintf(stderr, "      = %s\n", printable(failed).c_str());
  }
  if (outcome.signal != 0) std::fprintf(stderr, "the sweep was interrupted: ");
  if (left > 0)
    std::fprintf(stderr, "%zu of %zu runs are not finished; go on with: %s\n", left, sweep.runs.size(),
                 how_to_go_on_with(arguments).c_str());
  if (outcome.failed_code != kDone) return outcome.failed_code;
  return outcome.signal == 0 || left == 0 ? kDone : exit_code_of_signal(outcome.signal);
}

int run_all(const SweepArguments& arguments, const CheckedSweep& sweep) {
  const fs::path& folder = arguments.run.run_folder;
  const std::vector<SweepProcess> left = processes_of(arguments, sweep);
  std::printf("%s", total_text(arguments, sweep, sweep.runs.size() - left.size()).c_str());
  if (arguments.dry_run) {
    print_names(sweep, left);
    return kDone;
  }
  std::fflush(stdout);
  warn_of_shared_cores(static_cast<int>(std::min(left.size(), static_cast<size_t>(arguments.parallel))), sweep.most_ranks);
  write_sweep(folder, sweep.file);
  const SweepOutcome outcome = run_processes(left, arguments.parallel, sweep.runs.size());
  std::printf("\n");
  print_sweep_table({.folder = folder});
  return say_how_it_ended(arguments, sweep, outcome);
}

}  // namespace

int sweep_pipeline(const SweepArguments& given) {
  const RunSignals from_now_on;
  require_to_be_started_once("rlhf-run sweep starts the processes of each run itself", "start it once, without that");
  SweepArguments arguments = given;
  SweepGrid grid;
  if (arguments.goes_on) {
    SweepFile file = read_sweep(arguments.run.run_folder);
    arguments.run.pipeline.file = file.pipeline;
    grid = std::move(file.grid);
  } else {
    grid = grid_of(arguments);
  }
  const CheckedSweep sweep = check_sweep(arguments, grid);
  fs::path& folder = arguments.run.run_folder;
  if (folder.empty()) folder = default_run_folder(sweep.name + "-sweep", /*may_go_on=*/true);
  std::optional<RunLock> lock;
  if (!arguments.dry_run) {
    make_run_folder(folder);
    lock.emplace(folder);
  }
  if (holds_sweep(folder))
    compare_with_what_is_there(arguments, sweep);
  else
    refuse_folder_of_another(folder, sweep.runs);
  return run_all(arguments, sweep);
}

}  // namespace sluice::cli
