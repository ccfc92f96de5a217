#include "nodes/rollout/environments/server_breakdowns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::nodes::server_breakdowns_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const ToolAnswer kAnswer{.text = "5", .server = 0};
const ToolAnswer kBroken{.text = "error", .failed = true, .breakdown = "tool server \"x\": it is broken", .server = 0};
const Turn kTurn{.index = 1, .iteration = 7, .group = 3, .sample = 2, .node = "generate"};

std::string warnings_of(ServerBreakdowns& breakdowns, const ToolAnswer& answer, int times) {
  ::testing::internal::CaptureStderr();
  for (int time = 0; time < times; ++time) breakdowns.note(answer, kTurn);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ServerBreakdowns, AreToldWithTheirPlaceAndAgainAtEachDoubling) {
  ServerBreakdowns breakdowns(0);
  EXPECT_THAT(
      warnings_of(breakdowns, kBroken, 1),
      HasSubstr("node 'generate', iteration 7, turn 1 of sample 2 of group 3: tool server \"x\": it is broken; 1 call without "
                "an answer so far\n"));
  const std::string more = warnings_of(breakdowns, kBroken, 19);  // the 2nd, 4th, 8th and 16th
  EXPECT_EQ(std::ranges::count(more, '\n'), 4);
  EXPECT_EQ(warnings_of(breakdowns, kAnswer, 9), "");
}

TEST(ServerBreakdowns, SoManyInARowOfOneServerEndTheRun) {
  ServerBreakdowns breakdowns(3);
  ToolAnswer of_another = kBroken;
  of_another.server = 1;
  for (const ToolAnswer& answer : {kBroken, kBroken, kAnswer, kBroken, of_another, of_another, kBroken})
    EXPECT_NO_THROW(breakdowns.note(answer, kTurn));
  EXPECT_THAT(
      [&] { breakdowns.note(kBroken, kTurn); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("tool server \"x\": it is broken; that was its breakdown number 3 in a row"),
                                     HasSubstr("help: most_breakdowns"))));
}

TEST(ServerBreakdowns, ACallOfNoServerIsNone) {
  ServerBreakdowns breakdowns(1);
  EXPECT_NO_THROW(breakdowns.note({.text = "error: no such tool", .failed = true}, kTurn));
}

}  // namespace
}  // namespace sluice::nodes::server_breakdowns_test
