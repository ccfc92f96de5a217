#pragma once

#include <filesystem>
#include <optional>

#include "engine/observe/status.h"

namespace sluice::cli {

/// What the run in this folder said of itself when it came to its end. Nothing: it goes on, or was cut off, or does not tell.
std::optional<engine::RunStatus> status_at_end(const std::filesystem::path& run_folder);

}  // namespace sluice::cli
