#pragma once

#include <filesystem>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// Where a run takes place that was given no folder: runs/NAME-TIME under the current folder, which is made, so that no other run
/// takes it, too; where it is to go on with what is there, runs/NAME, which is not. Throws UserError.
std::filesystem::path default_run_folder(const std::string& name, bool may_go_on);

/// Makes the folder and those above it where they are not there. Throws UserError.
void make_run_folder(const std::filesystem::path& folder);

/// Whether a run has begun in it.
bool holds_run(const std::filesystem::path& folder);

/// Writes pipeline.toml (the effective pipeline), pipeline.dot, and plugins.json where there are plugins. Throws UserError.
void write_pipeline(const std::filesystem::path& folder, const engine::Plan& plan);

/// Removes what a run of `plan` has appended to, so that it can start over.
void clear_run_folder(const std::filesystem::path& folder, const engine::Plan& plan);

/// Takes back what was made for a run of `plan` that could not be set up; anything else in the folder stays, and then the folder
/// too.
void remove_run_folder(const std::filesystem::path& folder, const engine::Plan& plan);

}  // namespace sluice::cli
