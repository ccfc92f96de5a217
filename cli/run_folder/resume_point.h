#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "engine/checkpoint/checkpoint_folder.h"

namespace sluice::cli {

/// Nothing of a run folder, or not what was asked for, can be gone on from: the program ends with 1.
class NoResumePoint : public UserError {
 public:
  using UserError::UserError;
};

/// An intact checkpoint to go on from, of which every byte was read.
struct ResumePoint {
  engine::CheckpointPlace place;
  engine::Manifest manifest;
};

/// The newest intact one of a run folder; newer ones are named in a warning on stderr, with what is damaged. Nothing: the run has
/// saved none. Throws NoResumePoint when all are damaged.
std::optional<ResumePoint> newest_point(const std::filesystem::path& run_folder);

/// The one after `iterations` iterations. Throws UserError when there is none, NoResumePoint when it is damaged.
ResumePoint point_at(const std::filesystem::path& run_folder, int64_t iterations);

}  // namespace sluice::cli
