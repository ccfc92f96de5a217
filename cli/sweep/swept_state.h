#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sluice::cli {

/// How far a run of a sweep is, as its status.json says.
struct SweptState {
  std::string state = "not begun";  // or "running", "done", "failed", "interrupted", "stalled"; a killed one was running
  int64_t iterations = 0;           // [pipeline] iterations
  int64_t iterations_done = 0;

  /// That of a sweep with so many iterations is finished, also where somebody has it go on with more.
  bool is_finished(int64_t of_sweep) const {
    const bool has_more = iterations > of_sweep && iterations_done >= of_sweep;
    return has_more || (state == "done" && iterations >= of_sweep);
  }
};

/// A folder that is not there, or has no readable status.json, holds no run that has begun.
SweptState state_of_run(const std::filesystem::path& folder);

}  // namespace sluice::cli
