#include "models/sample/sampling_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/instruction_sets.h"

namespace sluice::models::sampling_kernels_test {
namespace {

constexpr int64_t kSizes[] = {1, 3, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000};

std::vector<float> random_row(int64_t size, uint64_t seed) {
  RandomStream random(seed, static_cast<uint64_t>(size));
  std::vector<float> row(static_cast<size_t>(size));
  for (float& value : row) value = static_cast<float>(random.uniform() * 30 - 20);
  return row;
}

TEST(SamplingKernels, TheTopIsTheLargestLogitWhereverItStands) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t size : kSizes)
      for (int64_t place = 0; place < size; place += 1 + size / 7) {
        std::vector<float> row = random_row(size, 1);
        row[static_cast<size_t>(place)] = 50;
        const RowTop top = top_of(row.data(), size, set);
        EXPECT_EQ(top.logit, 50);
        EXPECT_TRUE(top.finite);
        for (const float bad : {NAN, INFINITY, -INFINITY}) {
          row[static_cast<size_t>(place)] = bad;
          EXPECT_FALSE(top_of(row.data(), size, set).finite) << place << " of " << size;
        }
      }
}

TEST(SamplingKernels, WeightsAndTheirRunsAreThoseOfASoftmax) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t size : kSizes) {
      const std::vector<float> row = random_row(size, 2);
      const float top = *std::ranges::max_element(row), scale = 1.5f;
      std::vector<float> weights(row.size());
      std::vector<double> totals(static_cast<size_t>((size + kSamplingRun - 1) / kSamplingRun)), expected(totals.size());
      soften_row(row.data(), size, top, scale, weights.data(), totals.data(), set);
      for (size_t i = 0; i < row.size(); ++i) {
        const double weight = std::exp((static_cast<double>(row[i]) - top) * scale);
        EXPECT_NEAR(weights[i], weight, 4e-6 * weight);
        expected[i / kSamplingRun] += weight;
      }
      for (size_t run = 0; run < totals.size(); ++run) EXPECT_NEAR(totals[run], expected[run], 4e-6 * expected[run]);
    }
}

TEST(SamplingKernels, WhatIsAboveAThresholdIsCountedWithoutThoseOnIt) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t size : kSizes) {
      const std::vector<float> row = random_row(size, 3);
      const std::vector<float> weights(row.size(), 0.5f);
      const float threshold = row[row.size() / 2];
      const auto expected = std::ranges::count_if(row, [&](float logit) { return logit > threshold; });
      const RowShare share = share_above(row.data(), weights.data(), size, threshold, set);
      EXPECT_EQ(share.count, expected);
      EXPECT_EQ(share.mass, 0.5 * static_cast<double>(expected));
    }
}

TEST(SamplingKernels, IdsBetweenTwoLogitsAreInOrderAndTheUpperIsAmongThem) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t size : kSizes) {
      const std::vector<float> row = random_row(size, 4);
      const float low = row[0], high = std::max(row[row.size() / 2], row[0]);
      std::vector<int32_t> ids(row.size()), expected;
      for (size_t i = 0; i < row.size(); ++i)
        if (row[i] > low && row[i] <= high) expected.push_back(static_cast<int32_t>(i));
      ids.resize(static_cast<size_t>(ids_between(row.data(), size, low, high, ids.data(), set)));
      EXPECT_EQ(ids, expected) << size;
    }
}

}  // namespace
}  // namespace sluice::models::sampling_kernels_test
