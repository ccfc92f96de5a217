#include "models/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "tests/models/instruction_sets.h"

namespace sluice::models::packed_matrix_test {
namespace {

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

std::vector<Bfloat16> narrowed(const std::vector<float>& values) {
  std::vector<Bfloat16> result;
  for (const float value : values) result.push_back(to_bfloat16(value));
  return result;
}

struct Shape {
  int64_t rows, outputs, inputs;
};

const Shape kShapes[] = {{1, 32, 16},  {1, 300, 64},   {2, 97, 33},     {3, 31, 7},   {5, 64, 1},
                         {12, 33, 40}, {13, 129, 100}, {40, 160, 2048}, {250, 70, 31}};

/// x, a weight and what a product adds to; everything as the precision holds it.
struct Problem {
  Problem(Precision of, const Shape& shape)
      : precision(of),
        rows(shape.rows),
        outputs(shape.outputs),
        inputs(shape.inputs),
        x(random_floats(rows * inputs, 1)),
        weight(random_floats(outputs * inputs, 2)),
        bias(random_floats(outputs, 3)),
        onto(random_floats(rows * outputs, 4)),
        matrix(of, outputs, inputs) {
    narrow_x = narrowed(x);
    matrix.put(0, outputs, weight.data(), inputs);
  }

  float rounded(float value) const { return precision == Precision::kFloat32 ? value : to_float(to_bfloat16(value)); }
  const void* operand() const { return precision == Precision::kFloat32 ? static_cast<const void*>(x.data()) : narrow_x.data(); }

  double expected(int64_t row, int64_t output) const {
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i)
      sum += static_cast<double>(rounded(x[row * inputs + i])) * rounded(weight[output * inputs + i]);
    return sum;
  }

  // The error of float32 sums of `inputs` products of normal numbers.
  double tolerance() const { return 1e-6 * (4 + static_cast<double>(inputs)); }

  std::vector<float> product(const ProductArguments& more = {}, InstructionSet set = best_instruction_set()) const {
    std::vector<float> out = more.accumulate ? onto : std::vector<float>(static_cast<size_t>(rows * outputs), NAN);
    ProductArguments arguments = more;
    arguments.x = operand();
    arguments.x_stride = inputs;
    arguments.rows = rows;
    arguments.out = out.data();
    arguments.out_stride = outputs;
    multiply(matrix, arguments, set);
    return out;
  }

  Precision precision;
  int64_t rows, outputs, inputs;
  std::vector<float> x, weight, bias, onto;
  std::vector<Bfloat16> narrow_x;
  PackedMatrix matrix;
};

class PackedMatrixTest : public ::testing::TestWithParam<Precision> {};

TEST_P(PackedMatrixTest, ProductsAgreeWithDoublesOnEveryMachine) {
  for (const Shape& shape : kShapes) {
    const Problem p(GetParam(), shape);
    for (const InstructionSet set : runnable_instruction_sets()) {
      const std::vector<float> out = p.product({}, set);
      for (int64_t i = 0; i < p.rows * p.outputs; ++i)
        ASSERT_NEAR(out[i], p.expected(i / p.outputs, i % p.outputs), p.tolerance())
            << "machine " << static_cast<int>(set) << ", " << p.rows << " x " << p.outputs << " x " << p.inputs << " at " << i;
    }
  }
}

TEST_P(PackedMatrixTest, AddsTheBiasAndWhatIsThere) {
  for (const Shape& shape : kShapes) {
    const Problem p(GetParam(), shape);
    for (const InstructionSet set : runnable_instruction_sets()) {
      const std::vector<float> out = p.product({.bias = p.bias.data(), .accumulate = true}, set);
      for (int64_t i = 0; i < p.rows * p.outputs; ++i)
        ASSERT_NEAR(out[i], p.expected(i / p.outputs, i % p.outputs) + p.bias[i % p.outputs] + p.onto[i], p.tolerance());
    }
  }
}

TEST_P(PackedMatrixTest, RoundsOnceWhereTheResultIsNarrow) {
  for (const Shape& shape : kShapes) {
    const Problem p(GetParam(), shape);
    for (const InstructionSet set : runnable_instruction_sets()) {
      const std::vector<float> wide = p.product({.bias = p.bias.data()}, set);
      std::vector<Bfloat16> narrow(wide.size());
      multiply(p.matrix,
               {.x = p.operand(),
                .x_stride = p.inputs,
                .rows = p.rows,
                .bias = p.bias.data(),
                .narrow_out = narrow.data(),
                .out_stride = p.outputs},
               set);
      ASSERT_EQ(narrow, narrowed(wide));
    }
  }
}

TEST_P(PackedMatrixTest, ARowHasTheSameBitsInEveryBatchAndForAnyNumberOfThreads) {
  const Problem p(GetParam(), {1000, 200, 256});
  const int64_t threads = loop_threads();
  for (const int count : {1, 2, 3}) {
    set_loop_threads(count);
    const std::vector<float> all = p.product();
    for (const int64_t batch : {1, 2, 3, 5, 7, 12, 30}) {
      std::vector<float> out(static_cast<size_t>(batch * p.outputs));
      const int64_t element = bytes_of(p.precision), first = 500;
      multiply(p.matrix, {.x = static_cast<const char*>(p.operand()) + first * p.inputs * element,
                          .x_stride = p.inputs,
                          .rows = batch,
                          .out = out.data(),
                          .out_stride = p.outputs});
      ASSERT_TRUE(std::equal(out.begin(), out.end(), all.begin() + first * p.outputs))
          << batch << " rows, " << count << " threads";
    }
  }
  set_loop_threads(threads);
}

TEST_P(PackedMatrixTest, WeightsSideBySideAreOneMatrix) {
  const Problem p(GetParam(), {9, 100, 50});
  PackedMatrix parts(p.precision, p.outputs, p.inputs);
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 37}, {37, 1}, {38, 62}})
    parts.put(first, count, p.weight.data() + first * p.inputs, p.inputs);
  std::vector<float> out(static_cast<size_t>(p.rows * p.outputs));
  multiply(parts, {.x = p.operand(), .x_stride = p.inputs, .rows = p.rows, .out = out.data(), .out_stride = p.outputs});
  EXPECT_EQ(out, p.product());
}

TEST_P(PackedMatrixTest, ATransposedWeightIsTheMatrix) {
  for (const Shape& shape : kShapes) {
    const Problem p(GetParam(), shape);
    std::vector<float> turned(p.weight.size());
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t i = 0; i < p.inputs; ++i) turned[i * p.outputs + o] = p.weight[o * p.inputs + i];
    PackedMatrix matrix(p.precision, p.outputs, p.inputs);
    matrix.put_transposed(turned.data(), p.outputs);
    std::vector<float> out(static_cast<size_t>(p.rows * p.outputs));
    multiply(matrix, {.x = p.operand(), .x_stride = p.inputs, .rows = p.rows, .out = out.data(), .out_stride = p.outputs});
    ASSERT_EQ(out, p.product());
  }
}

TEST_P(PackedMatrixTest, AnOutputIsReadAsItWasPut) {
  for (const Shape& shape : kShapes) {
    const Problem p(GetParam(), shape);
    std::vector<float> row(static_cast<size_t>(p.inputs));
    for (int64_t output = 0; output < p.outputs; ++output) {
      p.matrix.row(output, row.data());
      for (int64_t i = 0; i < p.inputs; ++i) ASSERT_EQ(row[i], p.rounded(p.weight[output * p.inputs + i])) << output << ", " << i;
    }
    EXPECT_THROW(p.matrix.row(p.outputs, row.data()), InternalError);
    EXPECT_THROW(p.matrix.row(-1, row.data()), InternalError);
  }
}

TEST_P(PackedMatrixTest, APartIsTheMatrixOfItsOutputs) {
  const Problem p(GetParam(), {3, 129, 100});
  const std::vector<float> all = p.product();
  const int64_t first = 2 * PackedMatrix::kWidth, count = 50;
  const PackedMatrix part = p.matrix.part(first, count);
  EXPECT_EQ(part.panel(0), p.matrix.panel(2));  // the same memory
  std::vector<float> some(static_cast<size_t>(p.rows * count));
  multiply(part, {.x = p.operand(), .x_stride = p.inputs, .rows = p.rows, .out = some.data(), .out_stride = count});
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(some[row * count + i], all[row * p.outputs + first + i]);
  }
  EXPECT_THROW(p.matrix.part(1, 32), InternalError);
  EXPECT_THROW(p.matrix.part(first, 129), InternalError);
}

TEST_P(PackedMatrixTest, RowsAPageApartGiveTheSame) {
  const Problem p(GetParam(), {30, 70, 50});
  const int64_t stride = 4096 / bytes_of(p.precision), element = bytes_of(p.precision);
  std::vector<char> apart(static_cast<size_t>(p.rows * stride * element), 127);
  for (int64_t row = 0; row < p.rows; ++row)
    std::copy_n(static_cast<const char*>(p.operand()) + row * p.inputs * element, p.inputs * element,
                apart.data() + row * stride * element);
  std::vector<float> out(static_cast<size_t>(p.rows * p.outputs));
  multiply(p.matrix, {.x = apart.data(), .x_stride = stride, .rows = p.rows, .out = out.data(), .out_stride = p.outputs});
  EXPECT_EQ(out, p.product());
}

INSTANTIATE_TEST_SUITE_P(All, PackedMatrixTest, ::testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const auto& info) { return info.param == Precision::kFloat32 ? "Float32" : "Bfloat16"; });

TEST(PackedMatrix, TakesWeightsThatAreNarrowAlready) {
  const Problem p(Precision::kBfloat16, {7, 77, 65});
  PackedMatrix matrix(p.precision, p.outputs, p.inputs);
  const std::vector<Bfloat16> weight = narrowed(p.weight);
  matrix.put(0, p.outputs, weight.data(), p.inputs);
  std::vector<float> out(static_cast<size_t>(p.rows * p.outputs));
  multiply(matrix, {.x = p.operand(), .x_stride = p.inputs, .rows = p.rows, .out = out.data(), .out_stride = p.outputs});
  EXPECT_EQ(out, p.product());
}

TEST(PackedMatrix, TransposesWeightsThatAreNarrowAlready) {
  for (const Shape& shape : kShapes) {
    const Problem p(Precision::kBfloat16, shape);
    std::vector<Bfloat16> turned(p.weight.size());
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t i = 0; i < p.inputs; ++i) turned[i * p.outputs + o] = to_bfloat16(p.weight[o * p.inputs + i]);
    PackedMatrix matrix(p.precision, p.outputs, p.inputs);
    matrix.put_transposed(turned.data(), p.outputs);
    std::vector<float> out(static_cast<size_t>(p.rows * p.outputs));
    multiply(matrix, {.x = p.operand(), .x_stride = p.inputs, .rows = p.rows, .out = out.data(), .out_stride = p.outputs});
    ASSERT_EQ(out, p.product());
  }
}

TEST(Bfloat16, RoundsToTheNearestWithTiesToEven) {
  EXPECT_EQ(to_float(to_bfloat16(1.0f)), 1.0f);
  EXPECT_EQ(to_float(to_bfloat16(1.0f + 1.0f / 256)), 1.0f);  // half of a step of 1/128: to even
  EXPECT_EQ(to_float(to_bfloat16(1.0f + 3.0f / 256)), 1.0f + 4.0f / 256);
  EXPECT_EQ(to_float(to_bfloat16(1.0f + 1.0f / 255)), 1.0f + 2.0f / 256);
  EXPECT_EQ(to_float(to_bfloat16(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16(3.4e38f))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7fffffffu)))));
}

}  // namespace
}  // namespace sluice::models::packed_matrix_test
