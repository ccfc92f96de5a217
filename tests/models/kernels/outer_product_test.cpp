#include "models/kernels/outer_product.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "models/kernels/bfloat16.h"
#include "models/kernels/parallel.h"
#include "tests/models/instruction_sets.h"

namespace sluice::models::outer_product_test {
namespace {

// Standard normal numbers, in bfloat16 rounded; and what they are exactly.
struct Entries {
  std::vector<float> wide;
  std::vector<Bfloat16> narrow;

  const void* data(Precision precision) const {
    return precision == Precision::kFloat32 ? static_cast<const void*>(wide.data()) : narrow.data();
  }
  double exact(int64_t i, Precision precision) const {
    return precision == Precision::kFloat32 ? wide[static_cast<size_t>(i)] : to_float(narrow[static_cast<size_t>(i)]);
  }
};

Entries random_entries(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Entries entries;
  for (int64_t i = 0; i < count; ++i) {
    entries.wide.push_back(normal(engine));
    entries.narrow.push_back(to_bfloat16(entries.wide.back()));
  }
  return entries;
}

struct Shape {
  int64_t rows, outputs, inputs;
};

std::vector<float> sums(const Shape& s, const Entries& grad, const Entries& x, Precision precision, InstructionSet set) {
  std::vector<float> out(static_cast<size_t>(s.outputs * s.inputs), 1.0f);
  add_outer_product({.grad = grad.data(precision),
                     .x = x.data(precision),
                     .precision = precision,
                     .out = out.data(),
                     .grad_stride = s.outputs,
                     .x_stride = s.inputs,
                     .out_stride = s.inputs,
                     .rows = s.rows,
                     .outputs = s.outputs,
                     .inputs = s.inputs},
                    set);
  return out;
}

class OuterProduct : public ::testing::TestWithParam<Precision> {};

TEST_P(OuterProduct, AddsWhatDoublesAddOnEveryMachine) {
  for (const Shape& s : {Shape{0, 2, 3},
                         {1, 1, 1},
                         {2, 12, 32},
                         {3, 13, 33},
                         {100, 50, 70},
                         {515, 100, 540},
                         {1030, 60, 40},
                         {5, 2100, 40},
                         {5, 40, 2100},
                         {8200, 48, 240}}) {
    const Entries grad = random_entries(s.rows * s.outputs, 1), x = random_entries(s.rows * s.inputs, 2);
    std::vector<double> expected(static_cast<size_t>(s.outputs * s.inputs), 1.0);
    for (int64_t row = 0; row < s.rows; ++row)
      for (int64_t o = 0; o < s.outputs; ++o)
        for (int64_t i = 0; i < s.inputs; ++i)
          expected[o * s.inputs + i] += grad.exact(row * s.outputs + o, GetParam()) * x.exact(row * s.inputs + i, GetParam());
    for (const InstructionSet set : runnable_instruction_sets()) {
      const std::vector<float> out = sums(s, grad, x, GetParam(), set);
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], expected[i], 1e-6 * (4 + static_cast<double>(s.rows)))
            << s.rows << " rows, machine " << static_cast<int>(set);
    }
  }
}

TEST_P(OuterProduct, HasTheSameBitsForAnyNumberOfThreads) {
  const Shape s{700, 130, 300};
  const Entries grad = random_entries(s.rows * s.outputs, 1), x = random_entries(s.rows * s.inputs, 2);
  const int64_t threads = loop_threads();
  set_loop_threads(1);
  const std::vector<float> alone = sums(s, grad, x, GetParam(), best_instruction_set());
  for (const int count : {2, 3}) {
    set_loop_threads(count);
    EXPECT_EQ(sums(s, grad, x, GetParam(), best_instruction_set()), alone) << count << " threads";
  }
  set_loop_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(All, OuterProduct, ::testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const auto& of) { return of.param == Precision::kFloat32 ? "float32" : "bfloat16"; });

}  // namespace
}  // namespace sluice::models::outer_product_test
