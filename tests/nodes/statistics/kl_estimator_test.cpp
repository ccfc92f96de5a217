#include "nodes/statistics/kl_estimator.h"

#include <cmath>

#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::kl_estimator_test {
namespace {

TEST(KlEstimator, AgreesWithNemoRl) {
  const auto entry = reference_case("kl_unclamped");
  if (!entry) GTEST_SKIP() << "no test data";
  for (const auto& [estimator, name] : {std::pair{KlEstimator::kK1, "k1"}, {KlEstimator::kK2, "k2"}, {KlEstimator::kK3, "k3"}}) {
    for (size_t i = 0; i < 3; ++i) {
      const double expected = (*entry)["expect"][name][i];
      EXPECT_NEAR(estimate_kl(estimator, (*entry)["logprobs"][i], (*entry)["ref"][i]), expected, 1e-3 * std::abs(expected))
          << name << i;
    }
  }
}

TEST(KlEstimator, AbsIsTheSizeOfTheLogRatio) {
  EXPECT_DOUBLE_EQ(estimate_kl(KlEstimator::kAbs, -3, -1), 2);
  EXPECT_DOUBLE_EQ(estimate_kl(KlEstimator::kAbs, -1, -3), 2);
}

// By its series k3 is d^2 / 2 near zero, far below the rounding error of exp(-d) - 1 + d.
TEST(KlEstimator, K3KeepsItsPrecisionNearZero) { EXPECT_NEAR(estimate_kl(KlEstimator::kK3, 1e-7, 0) / 5e-15, 1, 1e-2); }

TEST(KlEstimator, NanStaysNan) {
  for (const auto& [estimator, name] : enum_names(KlEstimator{}))
    EXPECT_TRUE(std::isnan(estimate_kl(estimator, std::nan(""), 0))) << name;
}

}  // namespace
}  // namespace sluice::nodes::kl_estimator_test
