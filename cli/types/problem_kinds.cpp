#include "engine/check/problem_kinds.h"

#include <cstdio>

#include "cli/process/exit_codes.h"
#include "cli/types/commands.h"

namespace sluice::cli {

constexpr int kKindWidth = 28;

int list_problem_kinds(const std::string& format) {
  if (format == "markdown") {
    std::fputs(engine::problem_kinds_markdown().c_str(), stdout);
    return kDone;
  }
  for (const engine::ProblemKind& kind : engine::problem_kinds())
    std::printf("%-*s %-8s %s\n", kKindWidth, kind.id, severity_name(kind.severity), kind.says);
  return kDone;
}

}  // namespace sluice::cli
