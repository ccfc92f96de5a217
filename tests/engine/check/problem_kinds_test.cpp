#include "engine/check/problem_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sluice::engine::problem_kinds_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(ProblemKinds, IdsAreUniqueAndKebabCase) {
  std::set<std::string> seen;
  for (const ProblemKind& kind : problem_kinds()) {
    EXPECT_TRUE(seen.insert(kind.id).second) << kind.id;
    EXPECT_THAT(kind.id, MatchesRegex("[a-z]+(-[a-z]+)*"));
  }
}

TEST(ProblemKinds, TextsFitIntoOneCellOfATable) {
  for (const ProblemKind& kind : problem_kinds()) {
    for (const std::string text : {kind.says, kind.remedy}) {
      EXPECT_THAT(text, Not(HasSubstr("|"))) << kind.id;
      EXPECT_THAT(text, Not(HasSubstr("\n"))) << kind.id;
      EXPECT_FALSE(text.empty() || text.ends_with('.')) << kind.id;
    }
  }
}

TEST(ProblemKinds, AreFoundByTheirId) {
  ASSERT_NE(find_problem_kind("budget-stalls"), nullptr);
  EXPECT_EQ(find_problem_kind("budget-stalls")->severity, Severity::kError);
  EXPECT_EQ(find_problem_kind("model-unused")->severity, Severity::kWarning);
  EXPECT_EQ(find_problem_kind("budget"), nullptr);
}

}  // namespace
}  // namespace sluice::engine::problem_kinds_test
