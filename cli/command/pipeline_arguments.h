#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::cli {

/// What the user says of plugins: a pipeline file may come from a stranger, and a library that is loaded does what it likes.
struct PluginArguments {
  std::vector<std::string> files;  // --plugin: these are loaded, also where the pipeline does not name them
  bool all = false;                // --plugins: whatever the pipeline names is loaded
};

/// What every subcommand that takes a pipeline takes.
struct PipelineArguments {
  std::filesystem::path file;
  std::vector<std::string> sets;  // KEY=VALUE
  int ranks = 0;                  // that would run it, or do; 0: as many as its roles have, or one
  bool all_data = false;          // look at every row of the data, not only at the first of each file
  PluginArguments plugins = {};
};

}  // namespace sluice::cli
