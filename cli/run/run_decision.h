#pragma once

#include <optional>
#include <string>

#include "cli/run/conduct_run.h"

namespace sluice::cli {

/// What rank 0 tells the others of how the run begins, and what they make of it. Nothing: there is nothing to run.
/// Throws UserError where this rank cannot read the checkpoint that is told.
std::string told_of(const RunStart& start);
std::string told_of_nothing();
std::optional<RunStart> start_as_told(const std::string& told, Ranks& ranks);

}  // namespace sluice::cli
