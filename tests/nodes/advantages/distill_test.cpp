#include "nodes/advantages/distill.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::distill_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

constexpr engine::Column<float> kOther{"other_logprobs", engine::Extent::kAction};

// Of probabilities 0.5 and 0.1 of the first action, 0.2 and 0.8 of the second; the policy's are 1.
std::vector<float> of_two(const DistillParams& params) {
  const auto logs = [](std::vector<double> probabilities) {
    std::vector<float> logs;
    for (const double p : probabilities) logs.push_back(static_cast<float>(std::log(p)));
    return logs;
  };
  return NodeHarness<Distill>(params).run(
      sample(logs({0.5, 0.2}), {0, 0}).actions(kOther, logs({0.1, 0.8})))[columns::kAdvantages];
}

TEST(Distill, SeveralTeachersAreTheirMixture) {
  const std::vector<std::string> both{"teacher_logprobs", "other_logprobs"};
  EXPECT_THAT(of_two({.teacher_logprobs = both}), Near({std::log(0.3), std::log(0.5)}));
  EXPECT_THAT(of_two({.teacher_logprobs = both, .weights = {3, 1}}), Near({std::log(0.4), std::log(0.35)}));
}

TEST(Distill, OrTheirGeometricMean) {
  const DistillParams params{
      .teacher_logprobs = {"teacher_logprobs", "other_logprobs"}, .weights = {3, 1}, .mean = TeacherMean::kGeometric};
  EXPECT_THAT(of_two(params), Near({0.75 * std::log(0.5) + 0.25 * std::log(0.1), 0.75 * std::log(0.2) + 0.25 * std::log(0.8)}));
}

TEST(Distill, WhatOneTeacherRulesOutTheMixtureDoesNotAndANanStays) {
  const float never = -std::numeric_limits<float>::infinity();
  const NodeHarness<Distill> distill({.teacher_logprobs = {"teacher_logprobs", "other_logprobs"}});
  EXPECT_THAT(distill.run(sample({never, kNan, -1}, {0, 0, 0}).actions(kOther, {-1.0f, -1.0f, kNan}))[columns::kAdvantages],
              Near({-1 - std::log(2), kNan, kNan}));
}

TEST(Distill, RefusesSettingsThatDoNotFit) {
  const auto names = [](std::vector<std::string> list) {
    engine::Array array;
    for (std::string& name : list) array.push_back({std::move(name)});
    return engine::Value{std::move(array)};
  };
  const auto problems = NodeHarness<Distill>::problems;
  EXPECT_THAT(problems({{"teacher_logprobs", names({"rollout_logprobs"})}}), ElementsAre(HasSubstr("same column")));
  EXPECT_THAT(problems({{"teacher_logprobs", names({"a", "a"})}}), ElementsAre(HasSubstr("named twice")));
  EXPECT_THAT(problems({{"teacher_logprobs", names({"a", "b"})}, {"weights", {engine::Array{{1.0}}}}}),
              ElementsAre(HasSubstr("1 weight for 2 teachers")));
  EXPECT_THAT(problems({{"teacher_logprobs", names({"a", "b"})}, {"weights", {engine::Array{{1.0}, {0.0}}}}}),
              ElementsAre(HasSubstr("not above 0")));
  EXPECT_THAT(problems({{"mean", {std::string("geometric")}}}), ElementsAre(HasSubstr("no effect with one teacher")));
}

}  // namespace
}  // namespace sluice::nodes::distill_test
