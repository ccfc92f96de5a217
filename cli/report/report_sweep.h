#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

/// A run that a report shows.
struct ReportedRun {
  std::filesystem::path folder;
  std::string combination;  // of a sweep, whose runs share a colour; empty: it is of none
};

/// The folders, or of one that is that of a sweep its runs that have begun. Throws UserError where none of a sweep has.
std::vector<ReportedRun> reported_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace sluice::cli
