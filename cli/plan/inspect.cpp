#include <cstdio>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/plan/commands.h"
#include "cli/plan/problems.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "engine/text/graph_text.h"
#include "engine/text/plan_text.h"
#include "engine/text/ranks_text.h"

namespace sluice::cli {

// validate, plan and graph: three views of the plan.

namespace {

int validate_as_json(const PipelineArguments& arguments) {
  Problems problems;
  try {
    problems = check_pipeline(arguments).warnings;
  } catch (const UserError& error) {
    problems = error.problems();
  }
  print_text(problems_json(problems) + "\n");
  return has_errors(problems) ? kWrongPipeline : kDone;
}

// "; role train has ranks 0-1, rollout 2-3"; without roles nothing.
std::string roles_clause(const engine::Plan& plan) {
  std::vector<std::string> parts;
  for (const engine::PlanRole* const role : plan.all_roles())
    parts.push_back(role->name + (parts.empty() ? (role->ranks == 1 ? " has rank " : " has ranks ") : " ") +
                    engine::rank_numbers(plan, *role));
  return parts.empty() ? std::string() : "; role " + join(parts, ", ");
}

// How many warnings there are, and whether a run on this machine would begin in spite of them.
std::string outcome(const Problems& warnings) {
  if (warnings.empty()) return "no problems";
  const auto count = static_cast<int64_t>(warnings.size()), refused = static_cast<int64_t>(refused_by_a_run(warnings).size());
  const std::string of_them = count == 1 ? "which" : std::to_string(refused) + " of which";
  return "no errors, " + plural(count, "warning") + (refused == 0 ? std::string() : ", " + of_them + " a run would refuse here");
}

}  // namespace

int validate_pipeline(const PipelineArguments& arguments, const std::string& format) {
  if (format == "json") return validate_as_json(arguments);
  const CheckedPipeline checked = check_pipeline(arguments);
  print_warnings(checked.warnings);
  const std::string file = printable(arguments.file.string());
  if (!checked.plan) {
    std::printf("%s: no problems in what can be checked without its plugins\n", file.c_str());
    return kDone;
  }
  const engine::Plan& plan = *checked.plan;
  int64_t needed = 0;
  for (const engine::PlanPath& path : plan.paths) needed += path.capacity.tokens_needed;
  std::printf("%s: %s; %lld of %lld tokens are needed at worst%s%s\n", file.c_str(), outcome(checked.warnings).c_str(),
              static_cast<long long>(needed), static_cast<long long>(plan.training_tokens()), roles_clause(plan).c_str(),
              arguments.all_data ? "; every row of the data is as it should be" : "");
  return kDone;
}

int print_plan(const PipelineArguments& arguments, const std::string& format, bool config) {
  const LoadedPipeline loaded = load_pipeline(arguments);
  print_warnings(loaded.warnings);
  std::string text = config             ? engine::config_text(loaded.plan)
                     : format == "json" ? engine::plan_json(loaded.plan)
                                        : engine::plan_text(loaded.plan);
  if (!text.ends_with('\n')) text += '\n';
  print_text(text);
  return kDone;
}

int print_graph(const PipelineArguments& arguments, const std::string& format, const std::string& columns) {
  const LoadedPipeline loaded = load_pipeline(arguments);
  print_warnings(loaded.warnings);
  const auto shown = columns == "all" ? engine::GraphColumns::kAll : engine::GraphColumns::kRead;
  print_text(format == "dot" ? engine::dot_text(loaded.plan, shown) : engine::mermaid_text(loaded.plan, shown));
  return kDone;
}

}  // namespace sluice::cli
