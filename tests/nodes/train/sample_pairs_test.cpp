#include "nodes/train/sample_pairs.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <limits>

#include "base/error.h"

namespace sluice::nodes::sample_pairs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

// Each group a list of the numbers of actions of its samples; a sample has one token before them.
engine::Layout layout_of(const std::vector<std::vector<int64_t>>& groups) {
  engine::Layout layout;
  for (const auto& group : groups) {
    for (const int64_t actions : group) layout.add_sample(actions + 1, actions);
    layout.end_group();
  }
  return layout;
}

std::vector<double> vector(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

TEST(PairsByScore, AreTheBestAndTheWorstOfEachGroup) {
  const auto pairs = pairs_by_score(layout_of({{1, 1, 1}, {1, 1}}), std::vector<float>{2, 5, -1, 0, 1});
  ASSERT_THAT(pairs, SizeIs(2));
  EXPECT_EQ(pairs[0].chosen, 1u);
  EXPECT_EQ(pairs[0].rejected, 2u);
  EXPECT_EQ(pairs[1].group, 1u);
  EXPECT_EQ(pairs[1].chosen, 4u);
  EXPECT_EQ(pairs[1].rejected, 3u);
}

TEST(PairsByScore, OfEqualsTheFirstIsTaken) {
  const auto pairs = pairs_by_score(layout_of({{1, 1, 1, 1}}), std::vector<float>{0, 1, 1, 0});
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0].chosen, 1u);
  EXPECT_EQ(pairs[0].rejected, 0u);
}

TEST(PairsByScore, EqualScoresAndSingleSamplesAreNoPair) {
  EXPECT_THAT(pairs_by_score(layout_of({{1, 1, 1}, {1}, {}}), std::vector<float>{1, 1, 1, 7}), IsEmpty());
}

TEST(PairsByScore, AScoreThatIsNotFiniteIsAnError) {
  EXPECT_THAT(
      [] {
        pairs_by_score(layout_of({{1, 1}}), std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()});
      },
      ThrowsMessage<UserError>(HasSubstr("score is not finite")));
}

TEST(PairsWithActions, PassOverSamplesThatHaveNone) {
  const auto layout = layout_of({{2, 0, 1, 1}});
  const std::vector<float> scores{1, 9, -9, 0};
  const auto pairs = pairs_with_actions(layout, scores, std::vector<float>{0, 1, 0, 1});  // the third is masked
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0].chosen, 0u);
  EXPECT_EQ(pairs[0].rejected, 3u);
  EXPECT_EQ(pairs_with_actions(layout, scores, {})[0].rejected, 2u);
}

TEST(PreferenceInputs, AreWeightedSumsOverTheActionsOfEachSample) {
  const auto layout = layout_of({{2, 1, 3}});
  const PairedSamples paired(pairs_by_score(layout, std::vector<float>{0, 1, 2}));  // the third over the first
  EXPECT_THAT(paired.samples(), ElementsAre(0, 2));
  const std::vector<float> mask{1, 0.5f, 1, 1, 0, 2};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto inputs = preference_inputs(paired, layout, mask, at::tensor({-1.0, -4.0, -8.0, nan, -16.0}, at::kDouble),
                                        at::tensor({-2.0, -2.0, -1.0, nan, -1.0}, at::kDouble));
  EXPECT_THAT(vector(inputs.rejected.policy), ElementsAre(-3));
  EXPECT_THAT(vector(inputs.chosen.policy), ElementsAre(-40));
  EXPECT_THAT(vector(inputs.rejected.reference), ElementsAre(-3));
  EXPECT_THAT(vector(inputs.chosen.reference), ElementsAre(-3));
  EXPECT_THAT(vector(inputs.rejected.lengths), ElementsAre(1.5));
  EXPECT_THAT(vector(inputs.chosen.lengths), ElementsAre(3));
}

TEST(PreferenceInputs, GradientOfASampleGoesToItsActionsByTheirWeights) {
  const auto layout = layout_of({{2, 2}});
  const PairedSamples paired(pairs_by_score(layout, std::vector<float>{1, 0}));
  const at::Tensor logprobs = at::tensor({-1.0, -2.0, -3.0, -4.0}, at::kDouble).requires_grad_(true);
  const auto inputs = preference_inputs(paired, layout, std::vector<float>{1, 0.5f, 0, 1}, logprobs, {});
  inputs.chosen.policy.sub(inputs.rejected.policy.mul(3)).sum().backward();
  EXPECT_THAT(vector(logprobs.grad()), ElementsAre(1, 0.5, 0, -3));
}

}  // namespace
}  // namespace sluice::nodes::sample_pairs_test
