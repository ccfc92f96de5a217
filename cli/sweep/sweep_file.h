#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/sweep/sweep_grid.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// What a sweep is, as its folder keeps it in sweep.json, by which it is gone on with:
///   {"pipeline", "set": [KEY=VALUE, ...], "keys": [{"key", "values"}], "seeds",
///    "runs": [{"folder", "set"}],                               follows from the above, for who reads the file
///    "effective": {TABLE: {KEY: VALUE}}, "differs": [{TABLE: {KEY: VALUE}}]}
/// effective is the pipeline of the first run as `plan --config` has it, differs what each run has otherwise, null for what it
/// does not have.
struct SweepFile {
  std::string pipeline;  // the file, from the root, or builtin:NAME
  SweepGrid grid;
  std::vector<std::vector<engine::EffectiveKey>> effective;  // of each run: engine::keys_to_compare()
};

inline constexpr const char* kSweepFile = "sweep.json";

/// Whether the folder is that of a sweep.
bool holds_sweep(const std::filesystem::path& folder);

/// Durable on return. Throws UserError.
void write_sweep(const std::filesystem::path& folder, const SweepFile& sweep);

/// Throws UserError where there is none, or it is not what write_sweep() wrote.
SweepFile read_sweep(const std::filesystem::path& folder);

/// The folder of a run in that of its sweep. Throws UserError where it is a link, which in a stranger's sweep may lead anywhere.
std::filesystem::path folder_of_swept(const std::filesystem::path& sweep, const SweptRun& run);

/// A line each of what two grids differ in, from the first to the second; empty: nothing.
std::vector<std::string> grid_changes(const SweepGrid& before, const SweepGrid& after);

}  // namespace sluice::cli
