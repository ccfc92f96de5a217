#pragma once

#include <cstdint>
#include <filesystem>

namespace sluice::engine {

/// Memory that this process can use: that of the machine, or less where a control group limits it. 0: not known. `root` is where
/// /proc and /sys are looked for.
int64_t memory_of_machine(const std::filesystem::path& root = "/");

}  // namespace sluice::engine
