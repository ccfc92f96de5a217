#pragma once

#include <filesystem>

#include "engine/checkpoint/manifest.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

// What somebody has accepted with --accept-changes: a run that ends before its next checkpoint goes on from the one before, of
// which the pipeline is still another, and nobody should be asked again. RUN/accepted_changes.json, there while a checkpoint to
// go on from needs it.

/// Whether all changes since the checkpoint was saved that change results were accepted before, and there are some.
bool were_accepted(const std::filesystem::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan);

/// Notes the changes, where they were `accepted` and some change results; else removes what was noted. Throws UserError.
void note_accepted(const std::filesystem::path& run_folder, const engine::Manifest& saved, const engine::Plan& plan,
                   bool accepted);

}  // namespace sluice::cli
