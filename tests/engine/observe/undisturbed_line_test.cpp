#include "engine/observe/undisturbed_line.h"

#include <gtest/gtest.h>

#include "base/numbers/random.h"

namespace sluice::engine::undisturbed_line_test {
namespace {

TEST(UndisturbedLine, RecoversAKnownLine) {
  UndisturbedLine line;
  for (int size = 20; size < 500; size += 7) line.add(size, 300 + 2 * size);
  const auto [fixed, per_unit] = line.fit();
  EXPECT_NEAR(fixed, 300, 1);
  EXPECT_NEAR(per_unit, 2, 0.01);
}

// Large pieces of work were disturbed and small ones were not: a fit of the means would see a steeper line without a fixed part.
TEST(UndisturbedLine, WhatDisturbsSomeSizesOnlyDoesNotBendIt) {
  UndisturbedLine line;
  RandomStream random(1, 0);
  double sum = 0, sizes = 0;
  for (int i = 0; i < 300; ++i) {
    const double size = i % 10 == 0 ? 100 + static_cast<double>(random.below(100)) : 450 + static_cast<double>(random.below(50));
    const double calm = 300 + 2 * size, time = size > 400 && i % 3 != 0 ? 1.8 * calm : calm;
    line.add(size, time);
    sum += time, sizes += size;
  }
  const auto [fixed, per_unit] = line.fit();
  EXPECT_NEAR(fixed / per_unit, 150, 15);
  EXPECT_NEAR(300 * fixed + per_unit * sizes, sum, 1e-6 * sum);
}

TEST(UndisturbedLine, EqualSizesCostInProportionAndNoSizeIsAllFixed) {
  UndisturbedLine equal, none;
  for (const double time : {90, 100, 110}) equal.add(50, time), none.add(0, time);
  EXPECT_NEAR(equal.fit().fixed, 0, 1e-6);
  EXPECT_NEAR(equal.fit().per_unit, 2, 1e-6);
  EXPECT_NEAR(none.fit().fixed, 100, 1e-6);
  EXPECT_EQ(none.fit().per_unit, 0);
  EXPECT_EQ(UndisturbedLine().fit().fixed, 0);
}

}  // namespace
}  // namespace sluice::engine::undisturbed_line_test
