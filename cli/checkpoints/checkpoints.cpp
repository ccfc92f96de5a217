#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/checkpoints/checkpoint_list.h"
#include "cli/checkpoints/commands.h"
#include "cli/process/exit_codes.h"
#include "cli/run_folder/run_end.h"
#include "cli/run_folder/run_lock.h"
#include "cli/terminal/terminal.h"
#include "dsl/parse.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/contract/params/param_set.h"
#include "engine/contract/registry.h"
#include "engine/contract/run_folder.h"
#include "engine/contract/settings.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// [checkpoint] of the run folder's pipeline. Only that is read: whether the run could go on does not matter here.
engine::CheckpointSettings settings_of(const fs::path& run_folder) {
  const engine::Registry nothing;
  engine::CheckpointSettings settings;
  dsl::LoadResult loaded = dsl::load_pipeline(run_folder / engine::kPipelineFile, {});
  engine::BindContext context{nothing, loaded.problems, "[checkpoint]"};
  engine::checkpoint_params().erased().bind(&settings, loaded.spec.checkpoint, context);
  if (has_errors(loaded.problems)) throw UserError(loaded.problems);
  return settings;
}

engine::CheckpointSettings settings_of(const CheckpointsArguments& arguments) {
  const bool all_given = arguments.keep_last && arguments.keep_best;
  engine::CheckpointSettings settings = all_given ? engine::CheckpointSettings{} : settings_of(arguments.run_folder);
  if (arguments.keep_last) settings.keep_last = *arguments.keep_last;
  if (arguments.keep_best) settings.keep_best = *arguments.keep_best;
  settings.folder = arguments.folder;  // what the run folder says of places outside of it is not believed
  if (arguments.best) settings.best = *arguments.best == "lowest" ? engine::Best::kLowest : engine::Best::kHighest;
  return settings;
}

// A metric that was never measured would keep nothing.
void check_metric(const std::string& name, const std::vector<engine::Manifest>& manifests) {
  std::vector<std::string> names;
  for (const engine::Manifest& manifest : manifests) {
    for (const auto& [metric, value] : manifest.metrics) {
      if (metric == name) return;
      names.push_back(metric);
    }
  }
  if (manifests.empty()) return;
  const std::string nearest = engine::nearest_metric(name, names);
  throw UserError("no checkpoint has a metric " + sluice::quoted(name),
                  nearest.empty() ? "metrics.jsonl has the metrics of a run" : "did you mean " + nearest + "?");
}

std::string described(const ListedCheckpoint& listed) {
  return printable(listed.place.folder.string()) + " (" + human_bytes(listed.bytes) + ")";
}

}  // namespace

int list_checkpoints(const CheckpointsArguments& arguments) {
  const auto checkpoints = look_at_checkpoints(arguments.run_folder);
  if (arguments.format == "json") {
    std::printf("%s\n", checkpoints_json(checkpoints).c_str());
  } else {
    print_text(checkpoints_text(checkpoints, arguments.run_folder.string(), status_at_end(arguments.run_folder)));
  }
  return kDone;
}

int verify_checkpoints(const CheckpointsArguments& arguments) {
  bool good = true, found = false;
  for (const ListedCheckpoint& listed : look_at_checkpoints(arguments.run_folder)) {
    if (arguments.iterations && listed.place.iterations != *arguments.iterations) continue;
    found = true;
    good = good && listed.damage.empty();
    if (listed.damage.empty()) {
      std::printf("%s: %s: every byte is as it was saved\n", printable(listed.place.folder.string()).c_str(),
                  human_bytes(listed.bytes).c_str());
    } else {
      std::printf("%s/%s\n", printable(listed.place.folder.string()).c_str(), printable(listed.damage).c_str());
    }
  }
  if (!found && arguments.iterations)
    throw UserError(arguments.run_folder.string() + " has no checkpoint " + std::to_string(*arguments.iterations));
  if (!found) std::printf("%s has no checkpoints\n", printable(arguments.run_folder.string()).c_str());
  return good ? kDone : kFailed;
}

int prune_checkpoints(const CheckpointsArguments& arguments) {
  const RunLock lock(arguments.run_folder);
  const engine::CheckpointSettings settings = settings_of(arguments);
  const fs::path folder = engine::checkpoints_folder(arguments.run_folder, settings);
  std::vector<fs::path> writable = {arguments.run_folder};
  if (settings.folder) writable.push_back(absolute_path(*settings.folder));
  ConfinedFileSystem files(writable);
  const auto checkpoints = look_at_checkpoints(arguments.run_folder);
  std::vector<engine::Manifest> intact;
  for (const ListedCheckpoint& listed : checkpoints) {
    if (listed.damage.empty()) intact.push_back(*listed.manifest);
  }
  if (settings.keep_best) check_metric(*settings.keep_best, intact);
  const std::vector<int64_t> superfluous = engine::superfluous(intact, settings);
  for (const ListedCheckpoint& listed : checkpoints) {
    if (!listed.damage.empty()) {
      std::printf("left: %s is damaged: %s\n", printable(listed.place.folder.string()).c_str(), printable(listed.damage).c_str());
    } else if (std::ranges::find(superfluous, listed.place.iterations) != superfluous.end()) {
      if (!arguments.dry_run) remove_whole(folder / listed.place.folder.filename(), files);
      std::printf("%s: %s\n", arguments.dry_run ? "would remove" : "removed", described(listed).c_str());
    } else {
      std::printf("kept: %s\n", described(listed).c_str());
    }
  }
  for (const fs::path& path : engine::leftovers(arguments.run_folder)) {
    if (!arguments.dry_run) remove_tree(folder / path.filename(), files);
    std::printf("%s: %s, left of a save that was cut off\n", arguments.dry_run ? "would remove" : "removed",
                printable(path.string()).c_str());
  }
  return kDone;
}

}  // namespace sluice::cli
