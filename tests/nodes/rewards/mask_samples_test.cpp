#include "nodes/rewards/mask_samples.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/finish.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::mask_samples_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sample sample(size_t actions, float score = 0, Finish finish = Finish::kEndOfSequence) {
  Sample made;
  made.actions(columns::kValues, std::vector<float>(actions)).value(columns::kScore, score);
  return made.value(columns::kFinish, static_cast<uint8_t>(finish));
}

std::vector<float> mask(const MaskSamplesParams& params, std::vector<GroupOf> groups) {
  return NodeHarness<MaskSamples>(params).run(std::move(groups))[columns::kMask];
}

TEST(MaskSamples, TakesEveryActionOfATruncatedSample) {
  EXPECT_THAT(mask({.truncated = true}, {{sample(2), sample(3, 0, Finish::kLength)}, {sample(0, 0, Finish::kLength), sample(1)}}),
              ElementsAre(1, 1, 0, 0, 0, 1));
}

TEST(MaskSamples, KeepsTheBestOfEachGroup) {
  EXPECT_THAT(mask({.best_of = 1}, {{sample(1, 1), sample(1, 3), sample(1, 2)}, {sample(1, -1), sample(1, -2)}}),
              ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(mask({.best_of = 5}, {{sample(1, 1), sample(1, 3)}}), ElementsAre(1, 1));
}

TEST(MaskSamples, EarlierOneOfEqualSamplesIsBetter) {
  EXPECT_THAT(mask({.best_of = 2}, {{sample(1, 1), sample(1, 2), sample(1, 1), sample(1, 1)}}), ElementsAre(1, 1, 0, 0));
}

TEST(MaskSamples, TakesSamplesOfLowScore) {
  EXPECT_THAT(mask({.least_score = 0.7}, {{sample(1, 0.7f), sample(1, 0.69f), sample(1, 1)}}), ElementsAre(1, 0, 1));
}

TEST(MaskSamples, TakesLongSamples) {
  EXPECT_THAT(mask({.most_tokens = 2}, {{sample(1), sample(3), sample(2)}}), ElementsAre(1, 0, 0, 0, 1, 1));
}

TEST(MaskSamples, EveryReasonLooksAtAllSamples) {
  // The best sample is too long: the second best does not take its place.
  EXPECT_THAT(mask({.best_of = 1, .most_tokens = 1}, {{sample(2, 9), sample(1, 5)}}), Each(0));
}

TEST(MaskSamples, TellsTheShareOfEachReason) {
  NodeHarness<MaskSamples> harness({.truncated = true, .least_score = 0.5});
  harness.resources().node = "mask";
  const auto out = harness.run({{sample(1, 1), sample(2, 0), sample(3, 1, Finish::kLength), sample(0, 0, Finish::kLength)}});
  EXPECT_NEAR(out.metrics().at("filter/masked_truncated"), 0.5, 1e-9);
  EXPECT_NEAR(out.metrics().at("filter/masked_least_score"), 0.5, 1e-9);
  EXPECT_NEAR(out.metrics().at("filter/mask/dropped_samples"), 0.75, 1e-9);
  EXPECT_NEAR(out.metrics().at("filter/mask/dropped_tokens"), 5.0 / 6, 1e-9);
  EXPECT_EQ(out.metrics().size(), 4u);
}

TEST(MaskSamples, ReadsOnlyWhatItNeeds) {
  const auto reads = [](const MaskSamplesParams& params) { return NodeHarness<MaskSamples>(params).needs().reads; };
  EXPECT_THAT(reads({.truncated = true}), ElementsAre(columns::kFinish.spec()));
  EXPECT_THAT(reads({.best_of = 1}), ElementsAre(columns::kScore.spec()));
  EXPECT_THAT(reads({.most_tokens = 1}), ElementsAre());
}

TEST(MaskSamples, ScoreThatIsNotFiniteIsRefused) {
  EXPECT_THROW(mask({.best_of = 1}, {{sample(1, 1), sample(1, std::nanf(""))}}), UserError);
}

TEST(MaskSamples, RefusesToDoNothing) {
  EXPECT_THAT(NodeHarness<MaskSamples>::problems({}), ElementsAre(HasSubstr("no sample is ever masked")));
}

}  // namespace
}  // namespace sluice::nodes::mask_samples_test
