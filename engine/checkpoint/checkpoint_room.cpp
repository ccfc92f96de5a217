#include "engine/checkpoint/checkpoint_room.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

int64_t bytes_on_disk(const PlanModel& model) {
  if (!model.usage.updated) return 0;
  const int64_t versions = saturating_product(model.facts.version_bytes, model.usage.versions.saved);
  return saturating_sum(model.facts.folder_bytes, saturating_sum(model.facts.snapshot_bytes, versions));
}

// The most that a run saves: one at its end, and those before.
int64_t most_saved(const Plan& plan) {
  const int64_t every = plan.checkpoint.every_iterations, iterations = plan.pipeline.iterations;
  if (plan.checkpoint.every_minutes > 0) return iterations;
  return every > 0 ? (iterations - 1) / every + 1 : 1;
}

int64_t most_kept(const CheckpointSettings& settings) {
  if (settings.keep_last == 0) return std::numeric_limits<int64_t>::max();
  return saturating_sum(settings.keep_last, settings.keep_best ? 1 : 0);
}

// Where the checkpoints lie or will lie; the run folder itself where that is not made yet.
fs::path disk_of(const Plan& plan, const fs::path& run_folder) {
  if (const fs::path made = run_folder / "checkpoints"; is_folder(made)) return made;
  if (!plan.checkpoint.folder) return run_folder;
  fs::path folder = absolute_path(*plan.checkpoint.folder);
  while (!is_there(folder) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

int64_t CheckpointRoom::total_bytes() const { return saturating_product(bytes, at_a_time); }

CheckpointRoom checkpoint_room(const Plan& plan) {
  CheckpointRoom room{.at_a_time = std::min(most_saved(plan), saturating_sum(most_kept(plan.checkpoint), 1))};
  for (const PlanModel& model : plan.models) room.bytes = saturating_sum(room.bytes, bytes_on_disk(model));
  return room;
}

std::optional<std::string> lack_of_room(const Plan& plan, const fs::path& run_folder) {
  const CheckpointRoom room = checkpoint_room(plan);
  const fs::path disk = disk_of(plan, run_folder);
  std::error_code unknown;
  const fs::space_info space = fs::space(disk, unknown);
  if (unknown) return {};
  const auto there = static_cast<int64_t>(list_checkpoints(run_folder).size());
  const int64_t to_come = std::max<int64_t>(1, room.at_a_time - there), wanted = saturating_product(room.bytes, to_come);
  if (static_cast<uintmax_t>(wanted) <= space.available) return {};
  return "the disk of " + disk.string() + " has " + human_bytes(space.available) + " left; a checkpoint takes " +
         human_bytes(room.bytes) + ", and there is to be room for " + std::to_string(to_come) +
         " more of them: " + human_bytes(wanted);
}

}  // namespace sluice::engine
