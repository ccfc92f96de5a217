#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/observe/status.h"

namespace sluice::cli {

/// A checkpoint of which every byte was read.
struct ListedCheckpoint {
  engine::CheckpointPlace place;
  std::optional<engine::Manifest> manifest;  // nothing: it cannot be read
  int64_t bytes = 0;                         // on the disk
  std::string damage;                        // see damage_text(); empty: it is intact
};

/// Oldest first; also while the run goes on, which may remove some. Throws UserError when `run_folder` is not the folder of a
/// run.
std::vector<ListedCheckpoint> look_at_checkpoints(const std::filesystem::path& run_folder);

/// A line each: iterations, when it was saved, the metric that [checkpoint] keep_best names, or else the score or the loss, size,
/// and whether it is intact; then how to go on. Each line ends in a newline.
///
/// end  of a run that has come to its end: what it said of itself
std::string checkpoints_text(const std::vector<ListedCheckpoint>& checkpoints, const std::string& run_folder,
                             const std::optional<engine::RunStatus>& end = {});

/// {"checkpoints": [{"iterations", "folder", "saved_at", "bytes", "metrics", "intact", "damage"}]}; saved_at and metrics are null
/// where they cannot be read. Without a newline at the end.
std::string checkpoints_json(const std::vector<ListedCheckpoint>& checkpoints);

}  // namespace sluice::cli
