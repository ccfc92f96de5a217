#pragma once

#include <filesystem>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// What the files that a run reads were like when it began: `inputs.json` of its folder has a mark (file_marks.h) of the files
/// of each model, and of the files of data, of scorers and of tools that nodes name. By rank 0.
void note_inputs(const std::filesystem::path& run_folder, const engine::Plan& plan);

/// Throws UserError where some of them are others now, under the same name: a run that goes on would be another one. What is
/// not noted, or cannot be read, is not compared.
void refuse_changed_inputs(const std::filesystem::path& run_folder, const engine::Plan& plan);

}  // namespace sluice::cli
