#include "engine/checkpoint/checkpoints_place.h"

#include <string>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "engine/contract/run_folder.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

// In a folder for the checkpoints of many runs, that of this one.
fs::path place_in(const fs::path& folder, const fs::path& run_folder) {
  return absolute_path(folder) / absolute_path(run_folder / ".").lexically_normal().parent_path().filename();
}

bool same_place(const fs::path& one, const fs::path& other) {
  std::error_code missing;
  return fs::weakly_canonical(one, missing) == fs::weakly_canonical(other, missing) && !missing;
}

// Of a run whose folder leads nowhere yet.
void refuse_others(const fs::path& folder) {
  if (!is_folder(folder) || entries_of(folder).empty()) return;
  throw UserError(folder.string() + " already holds the checkpoints of another run",
                  "choose another folder with --set checkpoint.folder=..., or remove that one");
}

// What [checkpoint] folder must have been, for RUN/checkpoints to be this link.
std::string folder_of_link(const fs::path& link) {
  std::error_code none;
  const fs::path target = fs::read_symlink(link, none);
  return none ? "FOLDER" : target.parent_path().string();
}

}  // namespace

fs::path unfinished_checkpoint(const fs::path& run_folder, const CheckpointSettings& settings, int64_t iterations) {
  return checkpoints_folder(run_folder, settings) / (std::to_string(iterations) + ".tmp");
}

fs::path checkpoints_folder(const fs::path& run_folder, const CheckpointSettings& settings) {
  const fs::path own = run_folder / kCheckpointsFolder;
  const PathKind there = name_kind(own);
  if (there == PathKind::kFolder || (there == PathKind::kNothing && !settings.folder)) return own;
  if (there == PathKind::kNothing || there == PathKind::kLink) {
    const fs::path target = settings.folder ? place_in(*settings.folder, run_folder) : fs::path();
    if (there == PathKind::kNothing) {
      refuse_others(target);
      return target;
    }
    if (!target.empty() && same_place(own, target)) return target;
  }
  throw UserError(
      own.string() + " leads out of the run folder" + (settings.folder ? ", not to " + settings.folder->string() : ""),
      "if that is where this run has its checkpoints, say so: --set checkpoint.folder=" + folder_of_link(own) +
          ", or checkpoints prune --folder");
}

void follow_moved_checkpoints(const fs::path& run_folder, const CheckpointSettings& settings, FileSystem& files) {
  const fs::path own = run_folder / kCheckpointsFolder;
  if (!settings.folder || name_kind(own) != PathKind::kLink || is_there(own)) return;
  const fs::path target = place_in(*settings.folder, run_folder);
  if (is_folder(target)) replace_link(target, own, files);
}

fs::path make_checkpoints_folder(const fs::path& run_folder, const CheckpointSettings& settings, FileSystem& files) {
  const fs::path folder = checkpoints_folder(run_folder, settings);
  make_folders(folder, files);
  const fs::path own = run_folder / kCheckpointsFolder;
  if (folder != own && name_kind(own) == PathKind::kNothing) replace_link(folder, own, files);
  return folder;
}

}  // namespace sluice::engine
