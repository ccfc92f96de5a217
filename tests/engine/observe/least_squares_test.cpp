#include "engine/observe/least_squares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/numbers/random.h"

namespace sluice::engine::least_squares_test {
namespace {

TEST(LeastSquares, RecoversKnownCoefficients) {
  LeastSquares<3> sums;
  RandomStream random(1, 0);
  for (int i = 0; i < 2000; ++i) {
    const double sampled = 1 + static_cast<double>(random.below(64)),
                 prompt = i % 5 == 0 ? 10.0 * static_cast<double>(random.below(40)) : 0;
    sums.add({1, sampled, prompt}, 200 + 7 * sampled + 0.5 * prompt);
  }
  const auto [step, per_sampled, per_prompt] = sums.fit({0, 1, 1});
  EXPECT_NEAR(step, 200, 1);
  EXPECT_NEAR(per_sampled, 7, 0.02);
  EXPECT_NEAR(per_prompt, 0.5, 0.01);
}

// A slope that noise made negative would let more work cost less.
TEST(LeastSquares, NoCoefficientIsNegative) {
  LeastSquares<2> sums;
  for (int i = 0; i < 100; ++i) sums.add({1, 100.0 + i}, 500.0 - i);
  const auto [fixed, slope] = sums.fit({0, 1});
  EXPECT_EQ(slope, 0);
  EXPECT_NEAR(fixed, 450.5, 1e-6);
}

TEST(LeastSquares, WhatTheDataDoNotTellApartIsProportional) {
  LeastSquares<2> sums;
  for (int i = 0; i < 10; ++i) sums.add({1, 50}, 100);
  const auto [fixed, slope] = sums.fit({0, 1});
  EXPECT_NEAR(fixed, 0, 1e-6);
  EXPECT_NEAR(slope, 2, 1e-6);
}

// A few observations that took much longer must not get lost: it is the time of the whole run that is predicted.
TEST(LeastSquares, TheSumOfAllIsReproduced) {
  LeastSquares<2> sums;
  RandomStream random(2, 0);
  double y_sum = 0, x_sum = 0;
  for (int i = 0; i < 200; ++i) {
    const double x = 400 + static_cast<double>(random.below(100)), y = 30 + 2 * x + (i % 20 == 0 ? 3000 : 0);
    sums.add({1, x}, y);
    y_sum += y, x_sum += x;
  }
  const auto [fixed, slope] = sums.fit({0, 1});
  EXPECT_NEAR(200 * fixed + x_sum * slope, y_sum, 1e-6 * y_sum);
}

TEST(LeastSquares, AFeatureThatNeverOccursCostsNothing) {
  LeastSquares<2> sums;
  sums.add({1, 0}, 10);
  sums.add({1, 0}, 20);
  EXPECT_THAT(sums.fit({0, 1}), ::testing::ElementsAre(::testing::DoubleNear(15, 1e-9), 0));
  EXPECT_THAT(LeastSquares<2>().fit({0, 1}), ::testing::ElementsAre(0, 0));
}

}  // namespace
}  // namespace sluice::engine::least_squares_test
