#include "cli/plan/problems.h"

#include "base/json/json.h"

namespace sluice::cli {
namespace {

Json to_json(const Problem& problem) {
  const bool known = problem.where.known();
  return {{"kind", problem.kind},
          {"severity", severity_name(problem.severity)},
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

}  // namespace sluice::cli
