#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files/file_system.h"
#include "engine/contract/settings.h"

namespace sluice::engine {

// Where on the disk the checkpoints of a run are: in its own folder, or by [checkpoint] folder in one for those of many runs.

/// Where the checkpoint after so many iterations is while it is written.
std::filesystem::path unfinished_checkpoint(const std::filesystem::path& run_folder, const CheckpointSettings& settings,
                                            int64_t iterations);

/// Where a run has its checkpoints: RUN/checkpoints, or with [checkpoint] folder FOLDER/NAME, NAME being that of the run folder,
/// to which RUN/checkpoints is then a link. A folder RUN/checkpoints that is there stays in use. Throws UserError where a link
/// leads elsewhere, since nobody who starts the run has said that it may write there, and where there is none and FOLDER/NAME has
/// another run's checkpoints.
std::filesystem::path checkpoints_folder(const std::filesystem::path& run_folder, const CheckpointSettings& settings);

/// RUN/checkpoints leads to FOLDER/NAME again, where it leads nowhere and that is there: somebody has moved it, and says so.
void follow_moved_checkpoints(const std::filesystem::path& run_folder, const CheckpointSettings& settings, FileSystem& files);

/// As checkpoints_folder(); makes it, and the link. Throws UserError also when it cannot be made.
std::filesystem::path make_checkpoints_folder(const std::filesystem::path& run_folder, const CheckpointSettings& settings,
                                              FileSystem& files);

}  // namespace sluice::engine
