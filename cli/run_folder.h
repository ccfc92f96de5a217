#pragma once

#include <filesystem>

#include "engine/plan.h"

namespace sluice::cli {

/// Makes the folder of a run and writes pipeline.toml (the effective pipeline) and pipeline.dot into it. An empty `wanted` means
/// runs/NAME-TIME under the current folder. Throws UserError when it cannot be written or already holds a run.
std::filesystem::path make_run_folder(const std::filesystem::path& wanted, const engine::Plan& plan);

/// Takes back what make_run_folder made, after a run could not be set up; anything else in the folder stays.
void remove_run_folder(const std::filesystem::path& folder);

}  // namespace sluice::cli
