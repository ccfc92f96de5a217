#include <atomic>
#include <cstdio>
#include <variant>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/track/commands.h"
#include "cli/track/trackers.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

std::string text_at(const engine::Table& table, const char* key) {
  const engine::Entry* entry = table.find(key);
  const auto* text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value.data);
  return text == nullptr ? std::string() : *text;
}

// As the run itself has it.
std::string project_of(const fs::path& run_folder) {
  const engine::PipelineSpec spec = spec_of_run(run_folder / engine::kPipelineFile);
  const std::string project = text_at(spec.log, "project");
  return project.empty() ? text_at(spec.pipeline, "name") : project;
}

void say(const std::string& line) { std::fprintf(stderr, "%s\n", printable(line, Lines::kKept).c_str()); }

}  // namespace

int track_run(const TrackArguments& arguments) {
  const fs::path& folder = arguments.run_folder;
  if (!is_there(folder / engine::kMetricsFile))
    throw UserError(folder.string() + " is not the folder of a run: it has no " + engine::kMetricsFile,
                    "name the folder of a run, such as runs/ppo-20260131-180000");
  std::atomic<bool> well = true;
  Trackers trackers({.names = arguments.trackers,
                     .run_folder = folder,
                     .project = arguments.project.empty() ? project_of(folder) : arguments.project,
                     .afterwards = true,
                     .warn =
                         [&](const std::string& warning) {
                           well = false;
                           say("warning: " + warning);
                         },
                     .note = say});
  trackers.finish(std::nullopt);
  return well ? kDone : kFailed;
}

}  // namespace sluice::cli
