#include "nodes/rewards/filter_groups.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::filter_groups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Sample scored(float score) { return Sample().actions(columns::kValues, {0}).value(columns::kScore, score); }

std::vector<GroupOf> groups_of_scores(std::initializer_list<std::pair<float, float>> scores) {
  std::vector<GroupOf> groups;
  for (const auto& [first, second] : scores) groups.push_back(GroupOf{scored(first), scored(second)});
  return groups;
}

std::vector<int64_t> dropped(const FilterGroupsParams& params, std::initializer_list<std::pair<float, float>> scores) {
  return NodeHarness<FilterGroups>(params).run(groups_of_scores(scores)).dropped_groups();
}

TEST(FilterGroups, DropsGroupsWhoseScoresAreAllEqual) {
  EXPECT_THAT(dropped({}, {{1, 1}, {0, 1}, {0, 0}, {0.5f, 0.5f}}), ElementsAre(0, 2, 3));
}

TEST(FilterGroups, ScoreThatIsNotFiniteIsNamed) {
  EXPECT_THAT(
      [] {
        dropped({}, {{1, 0}, {1, std::nanf("")}});
      },
      ThrowsMessage<UserError>(HasSubstr("'score' is nan for sample 1 of group 1")));
}

TEST(FilterGroups, KeepsThemWhereOnlyTheMeanCounts) {
  EXPECT_THAT(dropped({.drop_equal_scores = false, .least_mean_score = 0.25, .most_mean_score = 0.75},
                      {{1, 1}, {0, 1}, {0, 0}, {0, 0.5f}}),
              ElementsAre(0, 2));
}

// As float32, which scores are, 0.7 is less than 0.7, and 0.3 more than 0.3.
TEST(FilterGroups, AMeanReachesTheBoundThatIsWrittenLikeIt) {
  EXPECT_THAT(dropped({.drop_equal_scores = false, .least_mean_score = 0.7}, {{0.7f, 0.7f}, {0.6f, 0.7f}}), ElementsAre(1));
  EXPECT_THAT(dropped({.drop_equal_scores = false, .most_mean_score = 0.3}, {{0.3f, 0.3f}, {0.3f, 0.4f}}), ElementsAre(1));
}

// Of a group whose only other score is masked nothing can be learned.
TEST(FilterGroups, MaskedSamplesDoNotCount) {
  const auto sample = [](float score, float mask) {
    return Sample().actions(columns::kMask, {mask}).value(columns::kScore, score);
  };
  const std::vector<GroupOf> groups = {{sample(1, 1), sample(1, 1), sample(0, 0)},
                                       {sample(1, 1), sample(0, 1), sample(0, 0)},
                                       {sample(1, 0), sample(0, 0), sample(0, 0)}};
  EXPECT_THAT(NodeHarness<FilterGroups>().run(groups).dropped_groups(), ElementsAre(0, 2));
  const FilterGroupsParams mean{.drop_equal_scores = false, .least_mean_score = 0.5};
  EXPECT_THAT(NodeHarness<FilterGroups>(mean).run(groups).dropped_groups(), ElementsAre(2));
}

TEST(FilterGroups, JudgesEachMicroBatchByItself) {
  NodeHarness<FilterGroups> harness;
  harness.resources().node = "useful";
  const auto outcome = harness.run(groups_of_scores({{0, 1}, {1, 1}, {1, 1}}), {2, 1});
  EXPECT_THAT(outcome.dropped_groups(), ElementsAre(1, 2));
  EXPECT_NEAR(outcome.metrics().at("filter/useful/zero_variance"), 2.0 / 3, 1e-9);
}

TEST(FilterGroups, SaysThatASingleSampleCannotPass) {
  try {
    NodeHarness<FilterGroups>().run({GroupOf{scored(1)}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("samples_per_prompt >= 2"));
  }
}

TEST(FilterGroups, IsAFilterWithTheBoundsOfItsParameters) {
  const engine::NodeNeeds needs = NodeHarness<FilterGroups>({.most_draws = 3, .oversample = 1.5}).needs();
  EXPECT_TRUE(needs.drops_groups);
  EXPECT_EQ(needs.most_draws, 3);
  EXPECT_EQ(needs.oversample, 1.5);
}

TEST(FilterGroups, RefusesSettingsUnderWhichItDoesNothing) {
  const auto problems = &NodeHarness<FilterGroups>::problems;
  EXPECT_THAT(problems({{"drop_equal_scores", {false, {}, {}}}}), ElementsAre(HasSubstr("keeps every group")));
  EXPECT_THAT(problems({{"oversample", {2.0, {}, {}}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"least_mean_score", {0.9, {}, {}}}, {"most_mean_score", {0.1, {}, {}}}}),
              ElementsAre(HasSubstr("no group can pass")));
  EXPECT_THAT(problems({{"most_draws", {int64_t{4}, {}, {}}}, {"oversample", {1.5, {}, {}}}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::filter_groups_test
