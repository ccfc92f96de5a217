#include "cli/load.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/error.h"
#include "base/machine.h"
#include "cli/plugin_loading.h"
#include "cli/recorded_origins.h"
#include "cli/turn_end_check.h"
#include "cli/vocabulary_check.h"
#include "dsl/parse.h"
#include "engine/contract/plugin.h"
#include "engine/plan/data_look.h"
#include "engine/plan/partly_checked.h"
#include "nodes/builtin.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// Checking a pipeline only warns of a device that this machine lacks; running it does not go on without.
void require_devices(const LoadedPipeline& loaded) {
  Problems missing;
  for (const Problem& problem : loaded.warnings) {
    if (problem.kind != "device-unavailable") continue;
    missing.push_back(problem);
    missing.back().severity = Severity::kError;
  }
  if (!missing.empty()) throw UserError(missing);
  for (const engine::PlanModel& model : loaded.plan.models) {
    if (const auto device = device_name(model.facts.device)) loaded.registry->find_device_kind(device->kind)->use();
  }
}

void warn_of_cores(const engine::Plan& plan) {
  const auto machine = available_cores();
  if (plan.runtime.cores <= machine) return;
  std::fprintf(
      stderr,
      "warning: [runtime] cores = %lld, but this process may use %lld: threads that share a core make everything slower\n\n",
      static_cast<long long>(plan.runtime.cores), static_cast<long long>(machine));
}

// Without its plugins a pipeline is checked as far as that is possible.
std::optional<engine::Plan> check_known(const engine::PipelineSpec& spec, const engine::Registry& registry, int ranks,
                                        const PluginOutcome& plugins, Problems& problems) {
  engine::PartlyChecked partly;
  if (plugins.complete)
    partly.result = engine::check(spec, registry, ranks);
  else
    partly = engine::check_without_plugins(spec, registry, ranks);
  std::ranges::move(partly.result.problems, std::back_inserter(problems));
  if (!plugins.unasked.empty()) problems.push_back(unchecked_warning(plugins.unasked, std::move(partly.unchecked)));
  return std::move(partly.result.plan);
}

CheckedPipeline check_pipeline(const PipelineArguments& arguments, PluginUse use, const fs::path& run_folder) {
  CheckedPipeline checked{.registry = make_registry(), .plan = {}, .warnings = {}};
  dsl::LoadResult parsed = dsl::load_pipeline(arguments.file, arguments.sets);
  Problems problems = std::move(parsed.problems);
  const PluginOutcome plugins = load_plugins({arguments, use, run_folder}, parsed.spec, *checked.registry, problems);
  // After a syntax error everything the checks would say is only a consequence.
  const bool worth_checking = !parsed.spec.nodes.empty() || !has_errors(problems);
  if (worth_checking) checked.plan = check_known(parsed.spec, *checked.registry, arguments.ranks, plugins, problems);
  if (checked.plan) {
    keep_recorded_origins(checked.plan->effective);
    const engine::DataDepth depth = arguments.all_data ? engine::DataDepth::kAll : engine::DataDepth::kBeginning;
    std::ranges::move(engine::check_data(*checked.plan, parsed.spec, depth), std::back_inserter(problems));
    std::ranges::move(check_vocabularies(*checked.plan, parsed.spec), std::back_inserter(problems));
    std::ranges::move(check_turn_ends(*checked.plan, parsed.spec), std::back_inserter(problems));
  }
  if (has_errors(problems)) throw UserError(problems);
  checked.warnings = std::move(problems);
  return checked;
}

LoadedPipeline with_plan(CheckedPipeline checked) {
  if (checked.plan) return {std::move(checked.registry), std::move(*checked.plan), std::move(checked.warnings)};
  for (Problem& problem : checked.warnings) {
    if (problem.kind != kPluginNotLoaded) continue;
    problem.severity = Severity::kError;
    problem.message += ", and without it there is no plan";
  }
  throw UserError(std::move(checked.warnings));
}

LoadedPipeline ready_to_run(LoadedPipeline loaded, Says says) {
  require_devices(loaded);
  if (says == Says::kNothing) return loaded;
  print_warnings(loaded.warnings);
  warn_of_cores(loaded.plan);
  return loaded;
}

}  // namespace

std::unique_ptr<engine::Registry> make_registry(const std::vector<std::string>& plugins) {
  auto registry = std::make_unique<engine::Registry>();
  nodes::register_builtin(*registry);
  for (const std::string& plugin : plugins) engine::load_plugin(plugin, *registry);
  return registry;
}

CheckedPipeline check_pipeline(const PipelineArguments& arguments) { return check_pipeline(arguments, PluginUse::kLook, {}); }

LoadedPipeline load_pipeline(const PipelineArguments& arguments) {
  return with_plan(check_pipeline(arguments, PluginUse::kLook, {}));
}

LoadedPipeline load_to_run(const PipelineArguments& arguments, Says says) {
  return ready_to_run(with_plan(check_pipeline(arguments, PluginUse::kRun, {})), says);
}

LoadedPipeline load_to_launch(const PipelineArguments& arguments) {
  return with_plan(check_pipeline(arguments, PluginUse::kRun, {}));
}

LoadedPipeline load_to_go_on(const fs::path& run_folder, const PipelineArguments& arguments, Says says) {
  return ready_to_run(with_plan(check_pipeline(arguments, PluginUse::kGoOn, run_folder)), says);
}

void print_warnings(const Problems& warnings) {
  if (!warnings.empty()) std::fprintf(stderr, "%s\n", render(warnings).c_str());
}

}  // namespace sluice::cli
