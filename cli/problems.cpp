#include "cli/problems.h"

#include <cstdio>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "engine/check/problem_kinds.h"

namespace sluice::cli {
namespace {

constexpr int kKindWidth = 28;

const char* name_of(Severity severity) { return severity == Severity::kError ? "error" : "warning"; }

Json to_json(const Problem& problem) {
  const bool known = problem.where.known();
  return {{"kind", problem.kind},
          {"severity", name_of(problem.severity)},
          {"file", known ? problem.where.source->name : std::string()},
          {"line", known ? problem.where.line : 0},
          {"column", known ? problem.where.column : 0},
          {"message", problem.message},
          {"caret", problem.caret},
          {"notes", problem.notes},
          {"help", problem.help}};
}

}  // namespace

std::string problems_json(const Problems& problems) {
  Json list = Json::array();
  for (const Problem& problem : in_order(problems)) list.push_back(to_json(problem));
  const Json all = {{"problems", std::move(list)}, {"ok", !has_errors(problems)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

int list_problem_kinds(const std::string& format) {
  if (format == "markdown") {
    std::fputs(engine::problem_kinds_markdown().c_str(), stdout);
    return kDone;
  }
  for (const engine::ProblemKind& kind : engine::problem_kinds())
    std::printf("%-*s %-8s %s\n", kKindWidth, kind.id, name_of(kind.severity), kind.says);
  return kDone;
}

}  // namespace sluice::cli
