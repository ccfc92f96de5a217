#include "nodes/advantages/distill.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr engine::Column<float> kTeacher{"teacher_logprobs", engine::Extent::kAction};

Sample sample(std::vector<float> teacher, std::vector<float> policy) {
  return Sample().actions(kTeacher, std::move(teacher)).actions(columns::kRolloutLogprobs, std::move(policy));
}

TEST(Distill, IsHowMuchLikelierTheTeacherFindsTheAction) {
  const auto out = NodeHarness<Distill>().run(sample({-1, -5}, {-2, -1}));
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(1, -4));
  EXPECT_NEAR(out.metrics().at("reference/teacher_kl_mean"), 1.5, 1e-6);
}

TEST(Distill, ClipBoundsEachDifferenceAndDiscountAddsThemUp) {
  const NodeHarness<Distill> distill({.clip = 2, .discount = 0.5});
  EXPECT_THAT(distill.run({GroupOf{sample({-1, -5}, {-2, -1}), sample({-1}, {-2})}})[columns::kAdvantages],
              ElementsAre(0, -2, 1));
}

TEST(Distill, MaskedActionsArePassedOver) {
  const NodeHarness<Distill> distill({.discount = 1});
  const auto out = distill.run(sample({-1, kNan, -1}, {-2, -1, -4}).actions(columns::kMask, {1.0f, 0.0f, 1.0f}));
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(4, 0, 3));
}

TEST(Distill, NanOfALaterActionStaysThereWithoutADiscount) {
  EXPECT_THAT(NodeHarness<Distill>().run(sample({-1, kNan}, {-2, -1}))[columns::kAdvantages], Near({1, kNan}));
}

TEST(Distill, RefusesToCompareAColumnWithItself) {
  EXPECT_THAT(NodeHarness<Distill>::problems({{"teacher_logprobs", {std::string("rollout_logprobs")}}}),
              ElementsAre(HasSubstr("same column")));
}

}  // namespace
}  // namespace sluice::nodes
