#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/command/command.h"

namespace sluice::cli {

struct TrackArguments {
  std::filesystem::path run_folder;
  std::vector<std::string> trackers;
  std::string project;  // empty: that of the run
};
/// Tells trackers of a run what they do not know of it yet. 1 where one could not be told.
int track_run(const TrackArguments& arguments);

/// Adds `track` to the program.
void add_track_command(Command& program);

}  // namespace sluice::cli
