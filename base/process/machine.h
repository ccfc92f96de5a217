#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// What of the machine this process may use. `root` is where /proc and /sys are looked for; what cannot be read limits nothing.
namespace sluice {

/// Bytes of memory: those of the machine, or fewer where a control group (cgroup version 1 or 2) limits them. 0: not known.
int64_t memory_of_machine(const std::filesystem::path& root = "/");

/// Cores, at least 1: those of the process's affinity, or fewer where a control group gives it less processor time than so many
/// have; a share of a core counts as one.
int64_t available_cores(const std::filesystem::path& root = "/");

/// The numbers of the cores of this thread's affinity, in order; none where the system does not tell.
std::vector<int> cores_of_affinity();

/// What processes have alike if and only if they have one steady clock: this start of the machine, and of its clocks what a
/// container has of its own. Empty where the system does not tell.
std::string steady_clock_name(const std::filesystem::path& root = "/");

/// Keeps this thread, and those that it starts from now on, to these cores. Nothing where there are none, or they cannot be had.
void keep_to_cores(const std::vector<int>& cores);

}  // namespace sluice
