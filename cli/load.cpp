#include "cli/load.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "dsl/parse.h"
#include "engine/data_look.h"
#include "engine/plugin.h"
#include "models/device.h"
#include "nodes/builtin.h"

namespace sluice::cli {
namespace {

void load_plugins(const engine::PipelineSpec& spec, engine::Registry& registry, Problems& problems) {
  for (const engine::Name& plugin : spec.plugins) {
    try {
      engine::load_plugin(std::filesystem::path(spec.plugins_base) / plugin.text, registry);
    } catch (const UserError& error) {
      for (Problem problem : error.problems()) {
        if (!problem.where.known()) problem.where = plugin.where;
        problems.push_back(std::move(problem));
      }
    }
  }
}

void look_at_data(const engine::Plan& plan, const engine::PipelineSpec& spec, bool all, Problems& problems) {
  for (Problem& problem : engine::check_data(plan, spec, all ? engine::DataDepth::kAll : engine::DataDepth::kBeginning))
    problems.push_back(std::move(problem));
}

// Checking a pipeline only warns of a device that this machine lacks; running it does not go on without.
void require_devices(const LoadedPipeline& loaded) {
  Problems missing;
  for (const Problem& problem : loaded.warnings) {
    if (problem.kind != "device-unavailable") continue;
    missing.push_back(problem);
    missing.back().severity = Severity::kError;
  }
  if (!missing.empty()) throw UserError(missing);
  const auto is_on_gpu = [](const engine::PlanModel& model) { return model.facts.device != "cpu"; };
  if (std::ranges::any_of(loaded.plan.models, is_on_gpu)) models::use_cuda();
}

void warn_of_cores(const engine::Plan& plan) {
  const auto machine = static_cast<int64_t>(std::thread::hardware_concurrency());
  if (plan.runtime.cores <= machine) return;
  std::fprintf(stderr, "warning: [runtime] cores = %lld, but this machine has %lld: threads that share a core make everything slower\n\n",
               static_cast<long long>(plan.runtime.cores), static_cast<long long>(machine));
}

}  // namespace

std::unique_ptr<engine::Registry> make_registry(const std::vector<std::string>& plugins) {
  auto registry = std::make_unique<engine::Registry>();
  nodes::register_builtin(*registry);
  for (const std::string& plugin : plugins) engine::load_plugin(plugin, *registry);
  return registry;
}

LoadedPipeline load_pipeline(const PipelineArguments& arguments) {
  LoadedPipeline loaded{.registry = make_registry(), .plan = {}, .warnings = {}};
  dsl::LoadResult parsed = dsl::load_pipeline(arguments.file, arguments.sets);
  Problems problems = std::move(parsed.problems);
  const size_t before_plugins = problems.size();
  load_plugins(parsed.spec, *loaded.registry, problems);
  // Without its plugins, or after a syntax error, everything the checks would say is only a consequence.
  const bool worth_checking = !parsed.spec.nodes.empty() || !has_errors(problems);
  if (problems.size() == before_plugins && worth_checking) {
    engine::CheckResult result = engine::check(parsed.spec, *loaded.registry);
    problems.insert(problems.end(), result.problems.begin(), result.problems.end());
    if (result.plan) loaded.plan = std::move(*result.plan), look_at_data(loaded.plan, parsed.spec, arguments.all_data, problems);
  }
  if (has_errors(problems)) throw UserError(problems);
  loaded.warnings = std::move(problems);
  return loaded;
}

LoadedPipeline load_to_run(const PipelineArguments& arguments) {
  LoadedPipeline loaded = load_pipeline(arguments);
  require_devices(loaded);
  print_warnings(loaded.warnings);
  warn_of_cores(loaded.plan);
  return loaded;
}

void print_warnings(const Problems& warnings) {
  if (!warnings.empty()) std::fprintf(stderr, "%s\n", render(warnings).c_str());
}

}  // namespace sluice::cli
