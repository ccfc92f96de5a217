#pragma once

#include <cstdint>
#include <filesystem>

/// What of the machine this process may use. `root` is where /proc and /sys are looked for; what cannot be read limits nothing.
namespace sluice {

/// Bytes of memory: those of the machine, or fewer where a control group (cgroup version 1 or 2) limits them. 0: not known.
int64_t memory_of_machine(const std::filesystem::path& root = "/");

/// Cores, at least 1: those of the process's affinity, or fewer where a control group gives it less processor time than so many
/// have; a share of a core counts as one.
int64_t available_cores(const std::filesystem::path& root = "/");

}  // namespace sluice
