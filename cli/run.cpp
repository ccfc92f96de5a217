#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/conduct_run.h"
#include "cli/exit_codes.h"
#include "cli/load.h"
#include "cli/resume_point.h"
#include "cli/run_folder.h"
#include "cli/run_lock.h"
#include "engine/status.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

void say_that_it_starts_over(const fs::path& folder) {
  std::printf("the run in %s was ended before its first checkpoint: it starts over\n", folder.c_str());
}

// A run that was killed behind its last checkpoint goes on, with nothing but its end.
bool is_complete(const fs::path& folder, const ResumePoint& point, const engine::Plan& plan) {
  if (point.manifest.iterations < plan.pipeline.iterations) return false;
  const fs::path file = folder / "status.json";
  try {
    return engine::parse_status(read_file(file), file.string()).state == "done";
  } catch (const UserError&) {
    return false;
  }
}

// What models and data refuse is found before anything runs, and leaves no run folder behind.
int run_from_the_beginning(const LoadedPipeline& loaded, const fs::path& folder, RunLock& lock) {
  try {
    return conduct_run(loaded, {.folder = folder});
  } catch (const UserError&) {
    lock.release();
    remove_run_folder(folder);
    throw;
  }
}

int go_on(const LoadedPipeline& loaded, const fs::path& folder, const std::optional<ResumePoint>& point, bool accept_changes,
          RunLock& lock) {
  if (point && is_complete(folder, *point, loaded.plan)) {
    std::printf("%s is complete: %s, the last checkpoint is %s\n", loaded.plan.pipeline.name.c_str(),
                plural(point->manifest.iterations, "iteration").c_str(), point->place.folder.c_str());
    return kDone;
  }
  if (point) return conduct_run(loaded, {.folder = folder, .from = point, .accept_changes = accept_changes});
  if (holds_run(folder)) {
    say_that_it_starts_over(folder);
    clear_run_folder(folder, loaded.plan);
  }
  return run_from_the_beginning(loaded, folder, lock);
}

}  // namespace

int run_pipeline(const RunArguments& arguments) {
  const LoadedPipeline loaded = load_to_run(arguments.pipeline);
  const bool wanted = !arguments.run_folder.empty();
  const fs::path folder = wanted ? arguments.run_folder : default_run_folder(loaded.plan.pipeline.name, arguments.may_go_on);
  make_run_folder(folder);
  RunLock lock(folder);
  if (arguments.may_go_on) return go_on(loaded, folder, newest_point(folder), arguments.accept_changes, lock);
  if (holds_run(folder)) {
    throw UserError("the run folder " + folder.string() + " already holds a run",
                    "choose another --run-dir, remove that one, or go on with it: --resume auto");
  }
  return run_from_the_beginning(loaded, folder, lock);
}

int resume_run(const ResumeArguments& arguments) {
  const fs::path& folder = arguments.run_folder;
  const fs::path pipeline = folder / "pipeline.toml";
  if (!fs::is_directory(folder))
    throw UserError(folder.string() + " is not a folder", "name the folder of a run, such as runs/ppo-20260131-180000");
  if (!fs::exists(pipeline)) {
    throw UserError(
        folder.string() + " holds no run: it has no pipeline.toml",
        "name the folder of a run, or give its pipeline: rlhf-run run FILE --resume auto --run-dir " + folder.string());
  }
  RunLock lock(folder);
  const auto point = arguments.from ? std::optional(point_at(folder, *arguments.from)) : newest_point(folder);
  const LoadedPipeline loaded = load_to_go_on(
      folder, {.file = pipeline, .sets = arguments.sets, .plugins = arguments.plugins});
  return go_on(loaded, folder, point, arguments.accept_changes, lock);
}

}  // namespace sluice::cli
