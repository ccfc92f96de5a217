#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cli/command/pipeline_arguments.h"

namespace sluice::cli {

/// Who vouches for a plugin that a pipeline names. A pipeline file and a run folder may come from a stranger, and a library does
/// what it likes as soon as it is loaded. So what looks at a pipeline loads what was said alone; `run` also what lies beside the
/// pipeline file; nothing loads what lies elsewhere.
enum class PluginPlace { kSaid, kBeside, kElsewhere };

/// A plugin as a pipeline names it.
struct NamedPlugin {
  std::string text;              // as it is written
  std::filesystem::path path;    // from the working folder
  std::filesystem::path folder;  // of the pipeline file that the user named
};

/// `environment`: the value of SLUICE_PLUGINS, files and folders with a colon between two.
///
/// Said: it is one of --plugin, a file of `environment` or in or below a folder of it, or --plugins was given.
/// Beside: it is written as a relative path without `..`, and what is there after all symbolic links lies in the folder of the
/// pipeline file or below. That also holds for a plugin that a file named by `extends` names.
PluginPlace place_of(const NamedPlugin& plugin, const PluginArguments& said, std::string_view environment);

/// Whether `path`, after all symbolic links, is in `folder` or below. False where one of the two cannot be reached.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace sluice::cli
