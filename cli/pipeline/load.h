#pragma once

#include <memory>
#include <optional>

#include "cli/command/pipeline_arguments.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// A pipeline that was read and proven. The registry outlives the plan because it is declared first.
struct LoadedPipeline {
  std::unique_ptr<engine::Registry> registry;
  engine::Plan plan;
  Problems warnings;
};

/// A pipeline as far as it can be checked. Without a plan where the checks need a plugin that was not loaded.
struct CheckedPipeline {
  std::unique_ptr<engine::Registry> registry;
  std::optional<engine::Plan> plan;
  Problems warnings;
};

/// Of several ranks one prints the warnings that all of them have.
enum class Says { kWarnings, kNothing };

/// The builtin types and those of the plugins given on the command line.
std::unique_ptr<engine::Registry> make_registry(const std::vector<std::string>& plugins = {});

/// Reads and checks the file and looks at its data, to look at it: of its plugins only those that the user named are loaded
/// (cli/pipeline/plugin_rules.h), and a warning names what was not checked without the others. Throws one UserError with every
/// problem.
CheckedPipeline check_pipeline(const PipelineArguments& arguments);

/// Likewise, for who needs the plan: throws UserError also where there is none without a plugin.
LoadedPipeline load_pipeline(const PipelineArguments& arguments);

/// What the pipeline of a run folder says; whether it could run does not matter. Throws UserError for what is no pipeline.
engine::PipelineSpec spec_of_run(const std::filesystem::path& pipeline);

/// A pipeline that may need more memory than there is, and what its file says.
struct SizedPipeline {
  std::unique_ptr<engine::Registry> registry;
  engine::PipelineSpec spec;
  engine::Plan plan;
  bool fits = false;
};

/// Likewise, for who wants to know how it would fit: throws UserError for all that is wrong but that it does not.
SizedPipeline load_to_size(const PipelineArguments& arguments);

/// Likewise, for a program that then runs it: loads plugins that lie beside the file too, prints the warnings, and refuses
/// devices that this machine lacks.
LoadedPipeline load_to_run(const PipelineArguments& arguments, Says says = Says::kWarnings);

/// Likewise, for a program that starts those that run it: loads the same plugins, and leaves warnings and devices to them.
LoadedPipeline load_to_launch(const PipelineArguments& arguments);

/// Likewise, by the pipeline of a run folder: loads the plugins that the run has loaded (cli/pipeline/plugin_seal.h).
LoadedPipeline load_to_go_on(const std::filesystem::path& run_folder, const PipelineArguments& arguments,
                             Says says = Says::kWarnings);

/// What the data of a plan and the folders of its models say: `all_data` of every row, else of the first of each file.
Problems problems_of_data(const engine::Plan& plan, const engine::PipelineSpec& spec, bool all_data);

/// Checking a pipeline only warns of a device that this machine lacks, and of weights or a tokenizer that are not there; running
/// it does not go on without. These are the errors.
Problems refused_by_a_run(const Problems& warnings);

/// Prints warnings to stderr.
void print_warnings(const Problems& warnings);

}  // namespace sluice::cli
