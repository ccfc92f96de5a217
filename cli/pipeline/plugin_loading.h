#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/problem.h"
#include "cli/command/pipeline_arguments.h"
#include "engine/contract/registry.h"
#include "engine/contract/spec/spec.h"

namespace sluice::cli {

/// What a pipeline is read for. It decides which of its plugins are loaded although the user did not name them: to look, none; to
/// run, those beside the pipeline file (cli/pipeline/plugin_rules.h); to go on, those that the run of the folder has loaded
/// (cli/pipeline/plugin_seal.h).
enum class PluginUse { kLook, kRun, kGoOn };

struct PluginContext {
  const PipelineArguments& arguments;
  PluginUse use = PluginUse::kLook;
  std::filesystem::path run_folder;  // with kGoOn
};

struct PluginOutcome {
  bool complete = true;               // every plugin is loaded
  std::vector<engine::Name> unasked;  // those that lie where they may, but were not asked for
};

/// Adds the plugins of --plugin to `spec`, and loads into `registry` what may be loaded. What may not, or cannot, is an error in
/// `problems`. Never throws for what a user wrote.
PluginOutcome load_plugins(const PluginContext& context, engine::PipelineSpec& spec, engine::Registry& registry,
                           Problems& problems);

inline constexpr char kPluginNotLoaded[] = "plugin-not-loaded";

/// The one warning that says which plugins were not asked for and, line by line, what is not checked without them.
Problem unchecked_warning(const std::vector<engine::Name>& unasked, std::vector<std::string> unchecked);

}  // namespace sluice::cli
