#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/problem.h"

namespace sluice::engine {

/// One kind of thing that can be wrong with a pipeline. Its id is stable: programs may depend on it, other than on messages.
struct ProblemKind {
  const char* id;  // kebab-case
  Severity severity;
  const char* says;    // what is wrong, one line
  const char* remedy;  // what to do, one line
};

/// Every kind that a check of a pipeline can report, in the order of the documentation: by subject. Problem::kind is one of these
/// ids. A new kind is one row here, and a case in tests/golden/problems.
std::span<const ProblemKind> problem_kinds();

/// Null where there is no such kind.
const ProblemKind* find_problem_kind(std::string_view id);

/// The table of docs/pipeline-language.md. Ends with a newline.
std::string problem_kinds_markdown();

}  // namespace sluice::engine
