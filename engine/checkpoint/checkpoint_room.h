#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// What the checkpoints of a run take on the disk, predicted. Tokenizers, the states of nodes and the manifest, which do not grow
/// with models, are not counted.
struct CheckpointRoom {
  int64_t bytes = 0;      // of one checkpoint
  int64_t at_a_time = 0;  // the most that there are: those that are kept, and one that is being written

  int64_t total_bytes() const;
};

CheckpointRoom checkpoint_room(const Plan& plan);

/// What a run is to be told that begins or goes on where the disk has not enough room for the checkpoints that are still to
/// come. Nothing: it has, or how much it has is not known.
std::optional<std::string> lack_of_room(const Plan& plan, const std::filesystem::path& run_folder);

}  // namespace sluice::engine
