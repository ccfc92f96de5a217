#include "cli/run_folder/resume_point.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/run_folder/damage_name.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using engine::CheckpointPlace;

ResumePoint point_of(const CheckpointPlace& place) { return {place, engine::read_manifest(place.folder)}; }

std::string damaged_place(const engine::DamagedCheckpoint& checkpoint) {
  return checkpoint.place.folder.string() + "/" + damage_text(checkpoint.place.folder, checkpoint.damage);
}

NoResumePoint none_is_intact(const fs::path& run_folder, const std::vector<engine::DamagedCheckpoint>& damaged) {
  Problem problem{
      .where = {}, .message = "no checkpoint of " + run_folder.string() + " is intact", .caret = {}, .notes = {}, .help = {}};
  for (const auto& checkpoint : damaged) problem.notes.push_back(damaged_place(checkpoint));
  problem.help = "put a copy of one in its place and resume again; or remove " +
                 shell_word((run_folder / engine::kCheckpointsFolder).string()) + " and " +
                 shell_word((run_folder / engine::kNewestCheckpointLink).string()) + " to start over, with rlhf-run resume " +
                 shell_word(run_folder.string());
  return NoResumePoint(problem);
}

void warn_of_damaged(const std::vector<engine::DamagedCheckpoint>& damaged, const CheckpointPlace& used) {
  for (const auto& checkpoint : damaged) {
    std::fprintf(stderr,
                 "warning: the checkpoint %s is damaged\n      = %s\n      = help: taking %s, the newest that is intact; a run "
                 "that goes on from it makes again what came after it\n\n",
                 printable(checkpoint.place.folder.string()).c_str(), printable(damaged_place(checkpoint)).c_str(),
                 printable(used.folder.string()).c_str());
  }
}

// What a run has saved is not where it was: on a disk that is not mounted, perhaps. Only who knows that it is lost may start
// over.
void refuse_lost_checkpoints(const fs::path& run_folder) {
  const fs::path all = run_folder / engine::kCheckpointsFolder, newest = run_folder / engine::kNewestCheckpointLink;
  std::vector<fs::path> lead_nowhere;
  for (const fs::path& link : {all, newest})
    if (name_kind(link) == PathKind::kLink && !is_there(link)) lead_nowhere.push_back(link);
  if (lead_nowhere.empty()) return;
  std::string links;
  for (const fs::path& link : lead_nowhere) links += (links.empty() ? "" : " and ") + shell_word(link.string());
  throw NoResumePoint(
      run_folder.string() + " has saved checkpoints, and they are gone: " + lead_nowhere.front().string() + " leads to nothing",
      "put them back, as by mounting the disk that they are on; where they were moved, say so with --set "
      "checkpoint.folder=FOLDER, in which " +
          run_folder.filename().string() + "/ is; or remove " + links + " to start over");
}

std::string counts_text(const std::vector<CheckpointPlace>& places) {
  std::vector<std::string> counts;
  for (const CheckpointPlace& place : places) counts.push_back(std::to_string(place.iterations));
  return counts.empty() ? "it has none" : "it has " + join(counts, ", ");
}

}  // namespace

std::optional<ResumePoint> newest_point(const fs::path& run_folder) {
  const auto [place, damaged] = engine::newest_intact(run_folder);
  if (!place && damaged.empty()) {
    refuse_lost_checkpoints(run_folder);
    return std::nullopt;
  }
  if (!place) throw none_is_intact(run_folder, damaged);
  warn_of_damaged(damaged, *place);
  return point_of(*place);
}

ResumePoint point_at(const fs::path& run_folder, int64_t iterations) {
  const auto places = engine::list_checkpoints(run_folder);
  const auto place = std::ranges::find(places, iterations, &CheckpointPlace::iterations);
  if (place == places.end()) {
    throw UserError(run_folder.string() + " has no checkpoint " + std::to_string(iterations), counts_text(places));
  }
  if (const auto damage = engine::damage_of(place->folder)) {
    throw NoResumePoint("the checkpoint " + place->folder.string() + " is damaged: " + damage_text(place->folder, *damage),
                        "rlhf-run checkpoints " + shell_word(run_folder.string()) + " shows which are intact");
  }
  return point_of(*place);
}

}  // namespace sluice::cli
