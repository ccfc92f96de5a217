#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/command/pipeline_arguments.h"

namespace sluice::cli {

/// --plugin and --plugins, of every subcommand that reads a pipeline.
void take_plugins(Command& command, PluginArguments& into);

/// --plugin, where there is no pipeline that names some.
void take_plugin_files(Command& command, std::vector<std::string>& into);

/// The pipeline and what it is set to, without plugins.
void take_written(Command& command, PipelineArguments& into);

/// The pipeline, what it is set to, and its plugins.
void take_pipeline(Command& command, PipelineArguments& into);

/// --ranks, of what is said of a run and does not run it.
void take_ranks(Command& command, PipelineArguments& into);

}  // namespace sluice::cli
