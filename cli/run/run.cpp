#include "cli/run/run.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/process/run_signals.h"
#include "cli/run/conduct_run.h"
#include "cli/run/ranks.h"
#include "cli/run/run_decision.h"
#include "cli/run_folder/accepted_changes.h"
#include "cli/run_folder/input_marks.h"
#include "cli/run_folder/resume_point.h"
#include "cli/run_folder/run_end.h"
#include "cli/run_folder/run_folder.h"
#include "cli/run_folder/run_lock.h"
#include "comm/left_behind.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/stop_rule.h"
#include "engine/run/resume.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

void say_that_it_starts_over(const fs::path& folder) {
  std::printf("the run in %s was ended before its first checkpoint: it starts over\n", printable(folder.string()).c_str());
}

// Why stop_when has ended it; empty: it has not.
std::string stopped_because(const fs::path& folder, const ResumePoint& point, const engine::Plan& plan) {
  if (!plan.pipeline.stop_when) return {};
  engine::StopRule rule(*plan.pipeline.stop_when);
  engine::show_past(rule, plan, folder / engine::kMetricsFile, point.manifest.iterations);
  return rule.reason();
}

// What to say of a run of which nothing is left to do. One that was killed after its last checkpoint goes on, with nothing but
// its end.
std::optional<std::string> complete_text(const fs::path& folder, const ResumePoint& point, const engine::Plan& plan) {
  const int64_t done = point.manifest.iterations;
  const bool has_all = done >= plan.pipeline.iterations;
  const std::string stopped = has_all ? std::string() : stopped_because(folder, point, plan);
  if ((!has_all && stopped.empty()) || !status_at_end(folder)) return std::nullopt;
  const std::string text = plan.pipeline.name + " is complete: " + plural(done, "iteration") + ", the last checkpoint is " +
                           point.place.folder.string() + "\n";
  const std::string resume = "  to go on with it: rlhf-run resume " + shell_word(folder.string()) + " --set ";
  if (has_all) return text + resume + "pipeline.iterations=N, with more than " + std::to_string(done) + "\n";
  return text + "  stopped     " + stopped + "\n" + resume + "pipeline.stop_when.KEY=VALUE, so that this does not stop it\n";
}

// What models and data refuse is found before anything runs, and leaves no run folder behind.
int run_from_the_beginning(const LoadedPipeline& loaded, const RunStart& start, RunLock& lock) {
  try {
    return conduct_run(loaded, start);
  } catch (const UserError&) {
    lock.release();
    remove_run_folder(start.folder, loaded.plan);
    throw;
  }
}

// From the point of `start`, if there is one.
int go_on(const LoadedPipeline& loaded, RunStart start, RunLock& lock) {
  const bool accepts_inputs = start.accept_changes;
  if (start.from && were_accepted(start.folder, start.from->manifest, loaded.plan)) start.accept_changes = true;
  const auto complete = start.from ? complete_text(start.folder, *start.from, loaded.plan) : std::nullopt;
  if (complete) {
    engine::refuse_changes(start.from->manifest, loaded.plan, start.accept_changes);
    start.ranks.tell(told_of_nothing());
    std::fputs(printable(*complete, Lines::kKept).c_str(), stdout);
    return kDone;
  }
  if (start.from) {
    if (!accepts_inputs) refuse_changed_inputs(start.folder, loaded.plan);
    return conduct_run(loaded, start);
  }
  if (holds_run(start.folder)) {
    say_that_it_starts_over(start.folder);
    clear_run_folder(start.folder, loaded.plan);
  }
  return run_from_the_beginning(loaded, start, lock);
}

// Another rank than 0.
int follow(const LoadedPipeline& loaded, Ranks& ranks) {
  const auto start = start_as_told(ranks.hear(), ranks);
  return start ? conduct_run(loaded, *start) : kDone;
}

// What is wrong with models and data all ranks find, and rank 0 tells all of it.
UserError first_of(const Problems& problems) {
  Problem first = problems.front();
  first.notes.push_back("and " + plural(static_cast<int64_t>(problems.size()) - 1, "more problem"));
  return UserError(std::move(first));
}

// What ends a rank before it runs is what the others hear of. One that comes too late to help has done no harm.
template <class Action>
int among_ranks(Ranks& ranks, const engine::Plan& plan, const Action& action) {
  try {
    ranks.join(plan);
    const int code = action();
    ranks.end(/*well=*/true, {});
    return code;
  } catch (const comm::CameTooLate& late) {
    ranks.end(/*well=*/true, {});
    std::fprintf(stderr, "%s", late.message().c_str());
    std::fputs("\n", stderr);
    return kDone;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    const auto* wrong = dynamic_cast<const UserError*>(&error);
    const bool are_several = wrong != nullptr && wrong->problems().size() > 1;  // found here: of others a rank hears one
    const bool is_of_others = ranks.others_failed() && !are_several;
    ranks.end(/*well=*/false, std::string(first_line(what)));
    if (is_of_others) {  // nothing is wrong with what this rank was asked to do
      std::fprintf(stderr, "%s", what.c_str());
      return kFailed;
    }
    if (!ranks.leads() && are_several) throw first_of(wrong->problems());
    throw;
  }
}

int lead(const LoadedPipeline& loaded, const RunArguments& arguments, Ranks& ranks) {
  const bool wanted = !arguments.run_folder.empty();
  const fs::path folder = wanted ? arguments.run_folder : default_run_folder(loaded.plan.pipeline.name, arguments.may_go_on);
  make_run_folder(folder);
  RunLock lock(folder);
  RunStart start{.ranks = ranks, .folder = folder, .show_samples_every = arguments.show_samples_every};
  if (arguments.may_go_on) {
    engine::follow_moved_checkpoints(folder, loaded.plan.checkpoint, disk());
    start.from = newest_point(folder);
    if (!start.from) engine::checkpoints_folder(folder, loaded.plan.checkpoint);  // refuses that of another run
    start.accept_changes = arguments.accept_changes;
    return go_on(loaded, start, lock);
  }
  if (holds_run(folder)) {
    throw UserError("the run folder " + folder.string() + " already holds a run",
                    "choose another --run-dir, remove that one, or go on with it: --resume auto");
  }
  engine::checkpoints_folder(folder, loaded.plan.checkpoint);  // likewise
  return run_from_the_beginning(loaded, start, lock);
}

int lead_on(const LoadedPipeline& loaded, const ResumeArguments& arguments, Ranks& ranks) {
  const fs::path& folder = arguments.run_folder;
  RunLock lock(folder);
  engine::follow_moved_checkpoints(folder, loaded.plan.checkpoint, disk());
  const auto point = arguments.from ? std::optional(point_at(folder, *arguments.from)) : newest_point(folder);
  return go_on(loaded,
               {.ranks = ranks,
                .folder = folder,
                .from = point,
                .accept_changes = arguments.accept_changes,
                .show_samples_every = arguments.show_samples_every},
               lock);
}

}  // namespace

int run_here(const RunArguments& arguments) {
  const RunSignals from_now_on;
  Ranks ranks;
  PipelineArguments pipeline = arguments.pipeline;
  pipeline.ranks = ranks.size();
  const LoadedPipeline loaded = load_to_run(pipeline, ranks.leads() ? Says::kWarnings : Says::kNothing);
  return among_ranks(ranks, loaded.plan, [&] { return ranks.leads() ? lead(loaded, arguments, ranks) : follow(loaded, ranks); });
}

int resume_here(const ResumeArguments& arguments) {
  const RunSignals from_now_on;
  const fs::path& folder = arguments.run_folder;
  const fs::path pipeline = folder / engine::kPipelineFile;
  if (!is_folder(folder))
    throw UserError(folder.string() + " is not a folder", "name the folder of a run, such as runs/ppo-20260131-180000");
  if (!is_there(pipeline)) {
    throw UserError(folder.string() + " holds no run: it has no pipeline.toml",
                    "name the folder of a run, or give its pipeline: rlhf-run run FILE --resume auto --run-dir " +
                        shell_word(folder.string()));
  }
  Ranks ranks;
  const LoadedPipeline loaded =
      load_to_go_on(folder, {.file = pipeline, .sets = arguments.sets, .ranks = ranks.size(), .plugins = arguments.plugins},
                    ranks.leads() ? Says::kWarnings : Says::kNothing);
  return among_ranks(ranks, loaded.plan,
                     [&] { return ranks.leads() ? lead_on(loaded, arguments, ranks) : follow(loaded, ranks); });
}

}  // namespace sluice::cli
