#include "cli/load.h"

#include <cstdio>

#include "base/error.h"
#include "dsl/parse.h"
#include "engine/plugin.h"
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
    if (result.plan) loaded.plan = std::move(*result.plan);
  }
  if (has_errors(problems)) throw UserError(problems);
  loaded.warnings = std::move(problems);
  return loaded;
}

void print_warnings(const Problems& warnings) {
  if (!warnings.empty()) std::fprintf(stderr, "%s\n", render(warnings).c_str());
}

}  // namespace sluice::cli
