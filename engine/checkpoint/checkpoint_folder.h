#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/manifest.h"

namespace sluice::engine {

// A run folder has its checkpoints in `checkpoints/N`, N being the count of complete iterations; `checkpoint` is a link to the
// newest. Names that are not a number are none: what is being written (`N.tmp`), removed (`N.removed`) or was passed over
// (`N.passed-over`).

struct CheckpointPlace {
  int64_t iterations = 0;
  std::filesystem::path folder;
};

/// All of a run folder, oldest first. Nothing is opened.
std::vector<CheckpointPlace> list_checkpoints(const std::filesystem::path& run_folder);

/// What a crash or a failure has left of writing and removing: nothing in it is wanted while nobody writes.
std::vector<std::filesystem::path> leftovers(const std::filesystem::path& run_folder);

/// What is wrong with a checkpoint.
struct Damage {
  std::filesystem::path file;  // the first that is damaged, in its folder
  std::string what;            // "is missing", "has 12 bytes instead of 40", "has another checksum than when it was saved"
  bool whole = false;          // the file has the right length: some byte of it is another
};

/// Reads every byte of it. Nothing: it is as it was saved.
std::optional<Damage> damage_of(const std::filesystem::path& checkpoint);

/// An event file of TensorBoard that is not there any more: somebody has tidied up, and no run needs it.
bool is_gone_event_file(const std::filesystem::path& run_folder, const std::string& name);

struct DamagedCheckpoint {
  CheckpointPlace place;
  Damage damage;
};
struct NewestIntact {
  std::optional<CheckpointPlace> place;    // nothing: none is intact
  std::vector<DamagedCheckpoint> damaged;  // those that are newer, the newest first
};
NewestIntact newest_intact(const std::filesystem::path& run_folder);

/// Which of `manifests` (by iterations, ascending) [checkpoint] keep_last and keep_best let go of; base/files/folder.h's
/// remove_whole() removes one. The newest always stays.
std::vector<int64_t> superfluous(const std::vector<Manifest>& manifests, const CheckpointSettings& settings);

}  // namespace sluice::engine
