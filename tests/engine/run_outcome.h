#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "engine/contract/state.h"

namespace sluice::engine {

/// What a run of toys amounts to, without what depends on timing: two runs with the same result are equal.
struct RunOutcome {
  std::vector<std::string> metrics;         // lines of metrics.jsonl
  std::map<std::string, int> slices;        // of the trace: how often it has each piece of work
  std::string weights;                      // of the last checkpoint
  std::map<std::string, NodeState> states;  // likewise, by node

  bool operator==(const RunOutcome&) const = default;
};

void PrintTo(const RunOutcome& outcome, std::ostream* out);

std::vector<std::string> metrics_of(const std::filesystem::path& run_folder);
std::map<std::string, int> slices_of(const std::filesystem::path& run_folder);
RunOutcome outcome_of(const std::filesystem::path& run_folder);

/// Expects that no checkpoint of the run is damaged. Empty: there is none.
std::filesystem::path newest_checkpoint(const std::filesystem::path& run_folder);

/// Makes it an empty folder.
void start_over(const std::filesystem::path& folder);

}  // namespace sluice::engine
