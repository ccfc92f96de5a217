#include "nodes/advantages/maxrl.h"
#include "nodes/advantages/opo.h"
#include "nodes/advantages/pass_at_k.h"
#include "nodes/advantages/rloo.h"

#include "base/error.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::group_formulas_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

GroupOf of_two(Sample a, Sample b) { return {std::move(a), std::move(b)}; }

Sample scored(float score, size_t actions = 1) {
  return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

TEST(Rloo, ComparesWithTheMeanOfTheOthers) {
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{scored(1), scored(2), scored(6)}});
  EXPECT_THAT(out[columns::kAdvantages], Near({-3, -1.5, 4.5}));
}

TEST(MaxRl, AgreesWithSkyRl) {
  const auto entry = reference_case("maxrl");
  if (!entry) GTEST_SKIP() << "no test data";
  const auto r = (*entry)["rewards"].get<std::vector<float>>();
  const NodeHarness<MaxRl> maxrl({.epsilon = (*entry)["eps"]});
  const auto out = maxrl.run({of_two(scored(r[0]), scored(r[1])), of_two(scored(r[2]), scored(r[3]))});
  EXPECT_THAT(out[columns::kAdvantages], Near((*entry)["expect"]["advantages"].get<std::vector<double>>()));
}

TEST(MaxRl, GroupWithoutSuccessIsZero) {
  EXPECT_THAT(NodeHarness<MaxRl>().run(std::vector{of_two(scored(0), scored(0))})[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<MaxRl>().run(std::vector{of_two(scored(-1), scored(1))})[columns::kAdvantages], Each(0.0f));
}

TEST(MaxRl, RefusesANegativeMean) {
  EXPECT_THROW(NodeHarness<MaxRl>().run(std::vector{of_two(scored(-2), scored(1))}), UserError);
}

// Lengths 3 and 1: baseline (3 * 1 + 1 * 5) / 4 = 2.
TEST(Opo, LongerSamplesWeighMoreInTheBaseline) {
  const auto out = NodeHarness<Opo>().run(std::vector{of_two(scored(1, 3), scored(5, 1))});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(-1, -1, -1, 3));
}

TEST(Opo, MaskShortensASample) {
  const auto sample = [](float score, std::vector<float> mask) {
    return Sample().value(columns::kScore, score).actions(columns::kMask, std::move(mask));
  };
  const auto out = NodeHarness<Opo>().run(std::vector{of_two(sample(1, {1, 0, 0}), sample(5, {1}))});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(-2, 0, 0, 2));
}

TEST(Opo, NoActionsAtAllIsFine) {
  EXPECT_TRUE(NodeHarness<Opo>().run(std::vector{of_two(scored(1, 0), scored(5, 0))})[columns::kAdvantages].empty());
}

// N = 4, F = 3, k = 2: R = 1 - 3/6 = 1/2, S = 1/2; right (1/2) / S = 1, wrong (1/2 - 2/3) / S = -1/3.
TEST(PassAtK, IsTheClosedFormOfItsPaper) {
  const NodeHarness<PassAtK> pass({.k = 2, .epsilon = 0});
  const auto out = pass.run(std::vector{GroupOf{scored(1), scored(0), scored(0), scored(0)}});
  EXPECT_THAT(out[columns::kAdvantages], Near({1, -1.0 / 3, -1.0 / 3, -1.0 / 3}));
}

// R = 1/4, S = sqrt(3)/4: as grpo with the biased std.
TEST(PassAtK, OfOneIsTheUsualAdvantage) {
  const NodeHarness<PassAtK> pass({.k = 1, .epsilon = 0});
  const auto out = pass.run(std::vector{GroupOf{scored(1), scored(0), scored(0), scored(0)}});
  EXPECT_THAT(out[columns::kAdvantages], Near({1.7320508, -0.5773503, -0.5773503, -0.5773503}));
}

TEST(PassAtK, IsZeroWhereNoSubsetFailsOrNonePasses) {
  const NodeHarness<PassAtK> pass({.k = 2});
  const auto out = pass.run({GroupOf{scored(1), scored(1), scored(0)}, GroupOf{scored(0), scored(0), scored(0)}});
  EXPECT_THAT(out[columns::kAdvantages], Each(0.0f));
}

TEST(PassAtK, LargeGroupsDoNotOverflow) {
  engine::Group group;
  for (int i = 0; i < 2048; ++i) group.layout.add_sample(2, 1);
  group.layout.end_group();
  engine::ColumnData scores(engine::DType::kFloat32, 2048);
  scores.entries<float>()[0] = 1;
  group.columns.push_back({columns::kScore.spec(), std::move(scores)});
  engine::Registry registry;
  registry.add<PassAtK>();
  const engine::NodeType& type = registry.nodes().begin()->second;
  auto params = std::make_shared<PassAtKParams>(PassAtKParams{.k = 1024, .epsilon = 0});
  const auto outcome =
      engine::try_node({.type = &type, .params = params, .resources = {}, .groups = {group}, .groups_per_batch = {}});
  EXPECT_NEAR(outcome.columns.front().data.entries<float>()[0], 1, 1e-5);  // half of the subsets have it: (1/2) / (1/2)
}

TEST(PassAtK, RefusesOtherScoresAndSmallGroups) {
  const NodeHarness<PassAtK> pass({.k = 2});
  EXPECT_THROW(pass.run(std::vector{of_two(scored(0.5f), scored(1))}), UserError);
  EXPECT_THROW(pass.run(std::vector{GroupOf{scored(1)}}), UserError);
}

TEST(PassAtK, GroupThatOnlyTheMaskMakesSmallIsZero) {
  const auto sample = [](float score, float mask) {
    return Sample().value(columns::kScore, score).actions(columns::kMask, {mask});
  };
  const NodeHarness<PassAtK> pass({.k = 2});
  EXPECT_THAT(pass.run(std::vector{of_two(sample(0, 1), sample(1, 0))})[columns::kAdvantages], Each(0.0f));
}

}  // namespace
}  // namespace sluice::nodes::group_formulas_test
