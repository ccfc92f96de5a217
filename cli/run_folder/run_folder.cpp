#include "cli/run_folder/run_folder.h"

#include <ctime>
#include <string>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "cli/pipeline/plugin_seal.h"
#include "engine/contract/run_folder.h"
#include "engine/text/graph_text.h"
#include "engine/text/plan_text.h"

namespace sluice::cli {
namespace fs = std::filesystem;

namespace {

// What `make` returns, for the run folder of that path. Its problem says what could not be made for the user.
template <class Make>
auto made_for_run(const fs::path& folder, const Make& make) {
  try {
    if (!is_utf8(absolute_path(folder).native())) throw UserError("its path is not UTF-8, which what a run records is");
    return make(folder);
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    problem.message = "cannot create the run folder " + folder.string() + ": " + problem.message;
    problem.help = "choose another place with --run-dir, or for a sweep with -o";
    throw UserError(problem);
  }
}

bool make_new(const fs::path& folder) {
  return made_for_run(folder, [](const fs::path& path) { return make_new_folder(path); });
}

}  // namespace

// Who makes the folder has its name: runs that start in the same second would all find that it is not there.
fs::path default_run_folder(const std::string& name, bool may_go_on) {
  if (may_go_on) return fs::path("runs") / name;
  char time[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", ::localtime_r(&now, &local));
  const fs::path first = fs::path("runs") / (name + "-" + time);
  fs::path folder = first;
  for (int n = 2; !make_new(folder); ++n) folder = first.string() + "-" + std::to_string(n);
  return folder;
}

void make_run_folder(const fs::path& folder) {
  made_for_run(folder, [](const fs::path& path) { make_folders(path); });
}

bool holds_run(const fs::path& folder) { return is_there(folder / engine::kMetricsFile); }

void write_pipeline(const fs::path& folder, const engine::Plan& plan) {
  ConfinedFileSystem files({folder});
  write_file_atomically(folder / engine::kPipelineFile, engine::config_text(plan), files);
  write_file_atomically(folder / engine::kPipelineGraphFile, engine::dot_text(plan), files);
  seal_plugins(folder, plan.plugins);
}

void clear_run_folder(const fs::path& folder, const engine::Plan& plan) {
  ConfinedFileSystem files({folder});
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const bool is_of_before = name == engine::kMetricsFile || name == engine::kAcceptedChangesFile || name == engine::kInputsFile;
    if (is_of_before || name.starts_with(engine::kEventFilePrefix)) remove_tree(entry, files);
  }
  for (const engine::PlanNode& node : plan.nodes) {
    for (const engine::FileNeed& file : node.needs.files) remove_tree(folder / file.path, files);
  }
  sync_folder(folder);
}

void remove_run_folder(const fs::path& folder, const engine::Plan& plan) {
  const fs::path metrics = folder / engine::kMetricsFile;
  if (is_there(metrics) && file_bytes(metrics) == 0) {  // it was to begin, and there was no room for the rest of its files
    clear_run_folder(folder, plan);
    disk().remove_file(folder / engine::kTraceFile);
  }
  disk().remove_file(folder / engine::kPipelineFile);
  disk().remove_file(folder / engine::kPipelineGraphFile);
  seal_plugins(folder, {});
  disk().remove_folder(folder);  // only when it is empty now
}

}  // namespace sluice::cli
