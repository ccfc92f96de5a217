#include "nodes/advantages/remax.h"

#include "base/error.h"
#include "tests/nodes/node_harness.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::remax_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sample scored(float score, size_t actions) {
  return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

TEST(ReMax, ComparesWithTheBaselineOfItsGroup) {
  const auto out = NodeHarness<ReMax>().run({GroupOf{scored(1, 2), scored(0, 1)}.value(columns::kBaselineScore, 1.0f),
                                             GroupOf{scored(5, 1), scored(9, 0)}.value(columns::kBaselineScore, 2.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(0, 0, -1, 3));
}

TEST(ReMax, TokenRewardsAddUpFromTheActionOn) {
  const auto sample = Sample().actions(columns::kTokenRewards, {1.0f, 2.0f, 3.0f});
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{sample}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(5, 4, 2));
}

TEST(ReMax, MaskedActionsAreLeftOut) {
  const auto sample = Sample().actions(columns::kTokenRewards, {1.0f, kNan, 3.0f}).actions(columns::kMask, {1.0f, 0.0f, 1.0f});
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{sample}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(3, 0, 2));
}

TEST(ReMax, ScoreOrBaselineThatIsNotFiniteIsNamed) {
  const auto failure = [](float score, float baseline) {
    const GroupOf fine = GroupOf{scored(1, 1)}.value(columns::kBaselineScore, 1.0f);
    return message_of<UserError>([&] {
      NodeHarness<ReMax>().run({fine, GroupOf{scored(score, 2)}.value(columns::kBaselineScore, baseline)});
    });
  };
  EXPECT_THAT(failure(kNan, 1), HasSubstr("'score' is nan for sample 0 of group 1"));
  EXPECT_THAT(failure(1, kNan), HasSubstr("'baseline_score' is nan for group 1"));
}

TEST(ReMax, NothingAtAllRecordsNothing) {
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{scored(1, 0)}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_TRUE(out.metrics().empty());
}

}  // namespace
}  // namespace sluice::nodes::remax_test
