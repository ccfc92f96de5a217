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

  bool is_done() const { return state == "done"; }
};

/// A folder that is not there, or has no readable status.json, holds no run that has begun.
SweptState state_of_run(const std::filesystem::path& folder);

}  // namespace sluice::cli
