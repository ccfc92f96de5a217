#pragma once

#include <gtest/gtest.h>

#include "engine/check/problem_kinds.h"

namespace sluice::engine::testing {

/// Each problem is of a kind that problem_kinds() lists, with its severity.
inline void expect_known_kinds(const Problems& problems) {
  for (const Problem& problem : problems) {
    const ProblemKind* kind = find_problem_kind(problem.kind);
    ASSERT_NE(kind, nullptr) << "no such kind: '" << problem.kind << "' of\n" << render(problem);
    EXPECT_EQ(kind->severity, problem.severity) << render(problem);
  }
}

}  // namespace sluice::engine::testing
