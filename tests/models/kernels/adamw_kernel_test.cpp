#include "models/kernels/adamw_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/instruction_sets.h"

namespace sluice::models::adamw_kernel_test {
namespace {

struct Buffers {
  std::vector<float> weights, gradients, first, second;

  explicit Buffers(size_t count) {
    RandomStream random(3, count);
    for (size_t i = 0; i < count; ++i) {
      weights.push_back(static_cast<float>(random.normal()));
      gradients.push_back(static_cast<float>(10 * random.normal()));
      first.push_back(static_cast<float>(random.normal()));
      second.push_back(static_cast<float>(random.uniform()));
    }
  }

  AdamWRange from(size_t begin) {
    return {&weights[begin], &gradients[begin], &first[begin], &second[begin], static_cast<int64_t>(weights.size() - begin)};
  }
};

constexpr AdamWFactors kFactors{.gradient_scale = 0.25f,
                                .new_first = 0.1f,
                                .new_second = 0.01f,
                                .kept = 0.99f,
                                .step_size = 0.3f,
                                .root_scale = 1.5f,
                                .epsilon = 1e-3f};

class AdamWKernel : public ::testing::TestWithParam<InstructionSet> {};

TEST_P(AdamWKernel, FollowsTheFormulaAndClearsTheGradients) {
  Buffers buffers(103);  // vectors of every width, and a rest
  const Buffers before = buffers;
  adamw_step(buffers.from(0), kFactors, GetParam());
  for (size_t i = 0; i < before.weights.size(); ++i) {
    const double g = before.gradients[i] * 0.25, m = before.first[i] + 0.1 * (g - before.first[i]);
    const double v = before.second[i] + 0.01 * (g * g - before.second[i]);
    EXPECT_NEAR(buffers.first[i], m, 1e-6);
    EXPECT_NEAR(buffers.second[i], v, 1e-6);
    EXPECT_NEAR(buffers.weights[i], 0.99 * before.weights[i] - 0.3 * m / (1.5 * std::sqrt(v) + 1e-3), 2e-6);
    EXPECT_EQ(buffers.gradients[i], 0);
  }
}

TEST_P(AdamWKernel, ARangeMayBeginAnywhere) {
  Buffers whole(103), parts = whole;
  adamw_step(whole.from(0), kFactors, GetParam());
  AdamWRange first = parts.from(0);
  first.count = 5;
  adamw_step(first, kFactors, GetParam());
  adamw_step(parts.from(5), kFactors, GetParam());
  EXPECT_EQ(whole.weights, parts.weights);
  EXPECT_EQ(whole.first, parts.first);
  EXPECT_EQ(whole.second, parts.second);
}

TEST_P(AdamWKernel, SumOfSquaresIsTheSameOnEveryMachine) {
  const Buffers buffers(1003);
  for (const int64_t count : {0, 1, 31, 32, 1003}) {
    double exact = 0;
    for (int64_t i = 0; i < count; ++i) exact += static_cast<double>(buffers.gradients[i]) * buffers.gradients[i];
    const double sum = sum_of_squares(buffers.gradients.data(), count, GetParam());
    EXPECT_NEAR(sum, exact, 1e-12 * exact);
    EXPECT_EQ(sum, sum_of_squares(buffers.gradients.data(), count, InstructionSet::kBaseline));
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, AdamWKernel, ::testing::ValuesIn(runnable_instruction_sets()));

}  // namespace
}  // namespace sluice::models::adamw_kernel_test
