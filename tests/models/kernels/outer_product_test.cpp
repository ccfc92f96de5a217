#include "models/kernels/outer_product.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/models/machines.h"

namespace sluice::models {
namespace {

std::vector<Bfloat16> random_entries(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<Bfloat16> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(to_bfloat16(normal(engine)));
  return values;
}

struct Shape {
  int64_t rows, outputs, inputs;
};

std::vector<float> sums(const Shape& s, const std::vector<Bfloat16>& grad, const std::vector<Bfloat16>& x, Machine machine) {
  std::vector<float> out(static_cast<size_t>(s.outputs * s.inputs), 1.0f);
  add_outer_product({.grad = grad.data(),
                     .x = x.data(),
                     .out = out.data(),
                     .grad_stride = s.outputs,
                     .x_stride = s.inputs,
                     .out_stride = s.inputs,
                     .rows = s.rows,
                     .outputs = s.outputs,
                     .inputs = s.inputs},
                    machine);
  return out;
}

TEST(OuterProduct, AddsWhatDoublesAddOnEveryMachine) {
  for (const Shape& s : {Shape{1, 1, 1}, {2, 12, 32}, {3, 13, 33}, {100, 50, 70}, {515, 100, 540}, {1030, 60, 40}}) {
    const auto grad = random_entries(s.rows * s.outputs, 1), x = random_entries(s.rows * s.inputs, 2);
    std::vector<double> expected(static_cast<size_t>(s.outputs * s.inputs), 1.0);
    for (int64_t row = 0; row < s.rows; ++row)
      for (int64_t o = 0; o < s.outputs; ++o)
        for (int64_t i = 0; i < s.inputs; ++i)
          expected[o * s.inputs + i] +=
              static_cast<double>(to_float(grad[row * s.outputs + o])) * to_float(x[row * s.inputs + i]);
    for (const Machine machine : machines()) {
      const std::vector<float> out = sums(s, grad, x, machine);
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], expected[i], 1e-6 * (4 + static_cast<double>(s.rows)))
            << s.rows << " rows, machine " << static_cast<int>(machine);
    }
  }
}

TEST(OuterProduct, HasTheSameBitsForAnyNumberOfThreads) {
  const Shape s{700, 130, 300};
  const auto grad = random_entries(s.rows * s.outputs, 1), x = random_entries(s.rows * s.inputs, 2);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const std::vector<float> alone = sums(s, grad, x, this_machine());
  for (const int count : {2, 3}) {
    at::set_num_threads(count);
    EXPECT_EQ(sums(s, grad, x, this_machine()), alone) << count << " threads";
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace sluice::models
