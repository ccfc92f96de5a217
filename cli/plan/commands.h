#pragma once

#include <filesystem>
#include <string>

#include "cli/command/command.h"
#include "cli/command/pipeline_arguments.h"

namespace sluice::cli {

int validate_pipeline(const PipelineArguments& arguments, const std::string& format);
/// `format`: "dot" or "mermaid". `columns`: "read" or "all", see engine/text/graph_text.h.
int print_graph(const PipelineArguments& arguments, const std::string& format, const std::string& columns);
int print_plan(const PipelineArguments& arguments, const std::string& format, bool config);
int plot_plan(const PipelineArguments& arguments, const std::string& format);
/// What the pipeline needs of memory, and with which changes it fits. `format`: "text" or "json". Throws UserError where none
/// does.
int fit_pipeline(const PipelineArguments& arguments, const std::string& format);

/// Starts the tool servers that a pipeline names, and prints what tools they have, or writes it to `output`.
int write_tools(const PipelineArguments& arguments, const std::filesystem::path& output);

/// Adds `validate`, `plan` and `graph` to the program.
void add_plan_commands(Command& program);

/// Adds `tools`.
void add_tools_command(Command& program);

}  // namespace sluice::cli
