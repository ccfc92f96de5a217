#include "models/train/moving_average.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models::moving_average_test {
namespace {

std::vector<float> numbers_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel()};
}

// 300,000 numbers are several pieces of a loop.
TEST(MovingAverage, IsDecayOfTheAverageAndTheRestOfTheWeights) {
  for (const double decay : {0.0, 0.3, 0.5, 0.9, 0.999}) {
    const at::Tensor average = at::randn({300'000}), live = at::randn({300'000});
    const std::vector<float> before = numbers_of(average), now = numbers_of(live);
    move_average(average, live, decay);
    const std::vector<float> after = numbers_of(average);
    for (size_t i = 0; i < after.size(); ++i) {
      const double expected = decay * before[i] + (1 - decay) * now[i];
      ASSERT_NEAR(after[i], expected, 3e-7 * (std::abs(before[i]) + std::abs(now[i]))) << decay << ", number " << i;
    }
    EXPECT_EQ(numbers_of(live), now);
  }
}

TEST(MovingAverage, BecomesTheWeightsWithoutDecay) {
  const at::Tensor average = at::randn({1000}), live = at::randn({1000});
  move_average(average, live, 0);
  EXPECT_TRUE(average.equal(live));
}

// A weight that did not move must not drift by rounding.
TEST(MovingAverage, WhatIsEqualStaysAsItIs) {
  for (const double decay : {0.1, 0.5, 0.99}) {
    const at::Tensor live = at::randn({1000}), average = live.clone();
    for (int i = 0; i < 10; ++i) move_average(average, live, decay);
    EXPECT_TRUE(average.equal(live)) << decay;
  }
}

TEST(MovingAverage, HasTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor average = at::randn({500'000}), live = at::randn({500'000});
  const int64_t threads = loop_threads();
  at::Tensor first;
  for (const int64_t count : {1, 2, 5}) {
    set_loop_threads(count);
    const at::Tensor moved = average.clone();
    move_average(moved, live, 0.9);
    if (!first.defined()) first = moved;
    EXPECT_TRUE(moved.equal(first)) << count << " threads";
  }
  set_loop_threads(threads);
}

TEST(MovingAverage, RefusesOtherWeights) { EXPECT_THROW(move_average(at::randn({4}), at::randn({5}), 0.5), InternalError); }

}  // namespace
}  // namespace sluice::models::moving_average_test
