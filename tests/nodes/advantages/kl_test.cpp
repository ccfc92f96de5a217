#include "nodes/advantages/kl.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::kl_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

KlNodeParams with(KlEstimator estimator) {
  KlNodeParams params;
  params.kl_estimator = estimator;
  return params;
}

Sample sample(std::vector<float> policy, std::vector<float> reference) {
  return Sample().actions(columns::kLogprobs, std::move(policy)).actions(columns::kReferenceLogprobs, std::move(reference));
}

TEST(Kl, AgreesWithNemoRl) {
  const auto entry = reference_case("kl_unclamped");
  if (!entry) GTEST_SKIP() << "no test data";
  const auto inputs = sample((*entry)["logprobs"].get<std::vector<float>>(), (*entry)["ref"].get<std::vector<float>>());
  for (const auto& [estimator, name] : {std::pair{KlEstimator::kK1, "k1"}, {KlEstimator::kK2, "k2"}, {KlEstimator::kK3, "k3"}}) {
    EXPECT_THAT(NodeHarness<Kl>(with(estimator)).run(inputs)[columns::kKl],
                Near((*entry)["expect"][name].get<std::vector<double>>(), 1e-3))
        << name;
  }
}

TEST(Kl, MaskMultipliesAndHidesEvenNan) {
  for (const auto& [estimator, name] : enum_names(KlEstimator{})) {
    const NodeHarness<Kl> kl(with(estimator));
    const auto plain = kl.run(sample({-1}, {-3}))[columns::kKl];
    const auto out = kl.run(sample({-1, -1, kNan}, {-3, -3, -1}).actions(columns::kMask, {1.0f, 0.25f, 0.0f}));
    EXPECT_THAT(out[columns::kKl], Near({plain[0], plain[0] / 4, 0})) << name;
    EXPECT_EQ(out[columns::kKl][2], 0) << name;
    EXPECT_NEAR(out.metrics().at("reference/kl_estimate_mean"), plain[0], 1e-6) << name;
  }
}

TEST(Kl, ClampsBoundTheLogRatioAndTheEstimate) {
  KlNodeParams params = with(KlEstimator::kK2);
  params.clamp_input = 2;
  EXPECT_THAT(NodeHarness<Kl>(params).run(sample({-1, -1}, {-9, 0}))[columns::kKl], Near({2, 0.5}));
  params.clamp_output = 0.25;
  EXPECT_THAT(NodeHarness<Kl>(params).run(sample({-1, -1}, {-9, 0}))[columns::kKl], Near({0.25, 0.25}));
  params = with(KlEstimator::kK1);
  params.clamp_output = 3;
  EXPECT_THAT(NodeHarness<Kl>(params).run(sample({-9, -1}, {-1, -9}))[columns::kKl], Near({-3, 3}));
}

TEST(Kl, NanStaysAtItsAction) { EXPECT_THAT(NodeHarness<Kl>().run(sample({kNan, -1}, {-1, -2}))[columns::kKl], Near({kNan, 1})); }

TEST(Kl, NothingAtAllRecordsNothing) { EXPECT_THAT(NodeHarness<Kl>().run(sample({}, {})).metrics(), IsEmpty()); }

TEST(Kl, RefusesToCompareTheReferenceWithItselfAndClampsOfNothing) {
  EXPECT_THAT(NodeHarness<Kl>::problems({{"logprobs", {std::string("reference_logprobs")}}}), ElementsAre(HasSubstr("always 0")));
  EXPECT_EQ(NodeHarness<Kl>::problems({{"clamp_input", {0.0}}}).size(), 1u);
}

}  // namespace
}  // namespace sluice::nodes::kl_test
