#pragma once

#include <memory>

#include "cli/commands.h"
#include "engine/plan.h"

namespace sluice::cli {

/// A pipeline that was read and proven. The registry outlives the plan because it is declared first.
struct LoadedPipeline {
  std::unique_ptr<engine::Registry> registry;
  engine::Plan plan;
  Problems warnings;
};

/// The builtin types and those of the plugins given on the command line.
std::unique_ptr<engine::Registry> make_registry(const std::vector<std::string>& plugins = {});

/// Reads the file, loads its plugins, checks it and looks at its data. Throws one UserError with every problem.
LoadedPipeline load_pipeline(const PipelineArguments& arguments);

/// Likewise, for a program that then runs it: prints the warnings, and refuses devices that this machine lacks.
LoadedPipeline load_to_run(const PipelineArguments& arguments);

/// Prints warnings to stderr.
void print_warnings(const Problems& warnings);

}  // namespace sluice::cli
