#include "cli/pipeline/load.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/error.h"
#include "base/process/machine.h"
#include "cli/pipeline/draft_check.h"
#include "cli/pipeline/plugin_loading.h"
#include "cli/pipeline/recorded_origins.h"
#include "cli/pipeline/turn_end_check.h"
#include "cli/pipeline/vocabulary_check.h"
#include "dsl/parse.h"
#include "engine/check/check.h"
#include "engine/check/partly_checked.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/plan/data_look.h"
#include "nodes/builtin.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

void require_models(const LoadedPipeline& loaded) {
  const Problems refused = refused_by_a_run(loaded.warnings);
  if (!refused.empty()) throw UserError(refused);
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

// What was found of a pipeline, right or wrong.
struct Looked {
  std::unique_ptr<engine::Registry> registry;
  engine::PipelineSpec spec;
  engine::CheckResult result;
};

// Without its plugins a pipeline is checked as far as that is possible.
engine::CheckResult check_known(const engine::PipelineSpec& spec, const engine::Registry& registry, int ranks,
                                const PluginOutcome& plugins) {
  if (plugins.complete) return engine::check(spec, registry, ranks);
  engine::PartlyChecked partly = engine::check_without_plugins(spec, registry, ranks);
  if (!plugins.unasked.empty()) partly.result.problems.push_back(unchecked_warning(plugins.unasked, std::move(partly.unchecked)));
  return std::move(partly.result);
}

Looked look(const PipelineArguments& arguments, PluginUse use, const fs::path& run_folder) {
  dsl::LoadResult parsed = dsl::load_pipeline(arguments.file, arguments.sets);
  Looked looked{.registry = make_registry(), .spec = std::move(parsed.spec), .result = {}};
  Problems problems = std::move(parsed.problems);
  const PluginOutcome plugins = load_plugins({arguments, use, run_folder}, looked.spec, *looked.registry, problems);
  // After a syntax error everything the checks would say is only a consequence.
  const bool worth_checking = !looked.spec.nodes.empty() || !has_errors(problems);
  if (worth_checking) looked.result = check_known(looked.spec, *looked.registry, arguments.ranks, plugins);
  std::ranges::move(looked.result.problems, std::back_inserter(problems));
  for (std::optional<engine::Plan>* plan : {&looked.result.plan, &looked.result.too_large}) {
    if (!*plan) continue;
    keep_recorded_origins((*plan)->effective);
    std::ranges::move(problems_of_data(**plan, looked.spec, arguments.all_data), std::back_inserter(problems));
  }
  looked.result.problems = std::move(problems);
  return looked;
}

CheckedPipeline check_pipeline(const PipelineArguments& arguments, PluginUse use, const fs::path& run_folder) {
  Looked looked = look(arguments, use, run_folder);
  if (has_errors(looked.result.problems)) throw UserError(looked.result.problems);
  return {std::move(looked.registry), std::move(looked.result.plan), std::move(looked.result.problems)};
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
  require_models(loaded);
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

engine::PipelineSpec spec_of_run(const fs::path& pipeline) {
  dsl::LoadResult loaded = dsl::load_pipeline(pipeline, {});
  if (has_errors(loaded.problems)) throw UserError(std::move(loaded.problems));
  return std::move(loaded.spec);
}

CheckedPipeline check_pipeline(const PipelineArguments& arguments) { return check_pipeline(arguments, PluginUse::kLook, {}); }

LoadedPipeline load_pipeline(const PipelineArguments& arguments) {
  return with_plan(check_pipeline(arguments, PluginUse::kLook, {}));
}

SizedPipeline load_to_size(const PipelineArguments& arguments) {
  Looked looked = look(arguments, PluginUse::kLook, {});
  Problems& problems = looked.result.problems;
  if (!looked.result.too_large) {
    CheckedPipeline checked{std::move(looked.registry), std::move(looked.result.plan), std::move(problems)};
    if (has_errors(checked.warnings)) throw UserError(checked.warnings);
    LoadedPipeline loaded = with_plan(std::move(checked));
    return {std::move(loaded.registry), std::move(looked.spec), std::move(loaded.plan), true};
  }
  std::erase_if(problems, [](const Problem& problem) { return problem.kind == "memory-too-small"; });
  if (has_errors(problems)) throw UserError(problems);
  return {std::move(looked.registry), std::move(looked.spec), std::move(*looked.result.too_large), false};
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

Problems problems_of_data(const engine::Plan& plan, const engine::PipelineSpec& spec, bool all_data) {
  const engine::DataDepth depth = all_data ? engine::DataDepth::kAll : engine::DataDepth::kBeginning;
  Problems problems = engine::check_data(plan, spec, depth);
  std::ranges::move(check_vocabularies(plan, spec), std::back_inserter(problems));
  std::ranges::move(check_drafts(plan, spec), std::back_inserter(problems));
  std::ranges::move(check_turn_ends(plan, spec), std::back_inserter(problems));
  return problems;
}

Problems refused_by_a_run(const Problems& warnings) {
  Problems refused;
  for (const Problem& problem : warnings) {
    if (problem.kind != "device-unavailable" && problem.kind != "weights-unusable" && problem.kind != "tokenizer-unusable")
      continue;
    refused.push_back(problem);
    refused.back().severity = Severity::kError;
  }
  return refused;
}

void print_warnings(const Problems& warnings) {
  if (!warnings.empty()) std::fprintf(stderr, "%s\n", render(warnings).c_str());
}

}  // namespace sluice::cli
