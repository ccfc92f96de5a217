#include "models/kernels/quantised_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "tests/models/instruction_sets.h"

namespace sluice::models::quantised_rows_test {
namespace {

constexpr QuantisationOptions kInt8{Quantisation::kInt8, 64}, kInt4{Quantisation::kInt4, 32};

at::Tensor row_of(const std::vector<float>& values) { return at::tensor(values, at::kFloat).unsqueeze(0); }

// Of the weights [begin, end) of a row: what the steps between codes are.
double step_of(Quantisation kind, const float* begin, const float* end) {
  double low = 0, high = 0;
  for (const float* w = begin; w < end; ++w) low = std::min<double>(low, *w), high = std::max<double>(high, *w);
  return kind == Quantisation::kInt8 ? std::max(-low, high) / 127 : (high - low) / 15;
}

TEST(QuantisedRows, HoldWhatTheirCodesCanSay) {
  std::vector<float> of_int8(64), of_int4(32);
  for (int i = 0; i < 64; ++i) of_int8[static_cast<size_t>(i)] = static_cast<float>(i * 4 - 127) * 0.5f;
  of_int8[63] = 63.5f;
  for (int i = 0; i < 32; ++i) of_int4[static_cast<size_t>(i)] = static_cast<float>(i % 16 - 5) * 0.25f;
  EXPECT_TRUE(dequantised(quantised(row_of(of_int8), kInt8)).equal(row_of(of_int8)));
  EXPECT_TRUE(dequantised(quantised(row_of(of_int4), kInt4)).equal(row_of(of_int4)));
}

TEST(QuantisedRows, AreWithinAStepOfTheWeightsThatTheyWereMadeOf) {
  for (const QuantisationOptions& options : {kInt8, kInt4}) {
    for (const int64_t inputs : {1, 31, 32, 33, 64, 200}) {
      const at::Tensor weight = at::randn({5, inputs}), values = dequantised(quantised(weight, options));
      for (int64_t row = 0; row < 5; ++row) {
        const float *w = weight[row].const_data_ptr<float>(), *v = values[row].const_data_ptr<float>();
        for (int64_t i = 0; i < inputs; ++i) {
          const int64_t first = i / options.group * options.group, end = std::min(first + options.group, inputs);
          // Where the zero was rounded, a weight at the end of the range is clipped by up to half a step.
          EXPECT_LE(std::abs(w[i] - v[i]), 1.001 * step_of(options.kind, w + first, w + end)) << inputs << " at " << i;
        }
      }
    }
  }
}

TEST(QuantisedRows, OfZerosAreZeros) {
  for (const QuantisationOptions& options : {kInt8, kInt4})
    EXPECT_TRUE(dequantised(quantised(at::zeros({3, 70}), options)).equal(at::zeros({3, 70})));
}

TEST(QuantisedRows, StandForThemselves) {
  for (const QuantisationOptions& options : {kInt8, kInt4}) {
    const at::Tensor weight = at::randn({9, 70}), rows = quantised(weight, options), values = dequantised(rows);
    EXPECT_TRUE(dequantised(rows.narrow(0, 3, 4)).equal(values.narrow(0, 3, 4)));
    EXPECT_TRUE(dequantised(at::cat({rows.narrow(0, 5, 4), rows.narrow(0, 0, 5)}))
                    .equal(at::cat({values.narrow(0, 5, 4), values.narrow(0, 0, 5)})));
    EXPECT_EQ(inputs_of(rows.narrow(0, 8, 1)), 70);
  }
}

// A byte or half a byte a weight; a scale of 4 bytes, and of int4 a byte of zero, a group; and 16 bytes a row.
TEST(QuantisedRows, TakeTheBytesThatArePredicted) {
  EXPECT_EQ(quantised_bytes({Quantisation::kInt4, 128}, 10, 4096), 10 * (16 + 32 * 5 + 2048));
  EXPECT_EQ(quantised_bytes({Quantisation::kInt8, 128}, 10, 4096), 10 * (16 + 32 * 4 + 4096));
  for (const QuantisationOptions& options : {kInt8, kInt4})
    for (const int64_t inputs : {1, 33, 64, 300})
      EXPECT_EQ(quantised(at::randn({3, inputs}), options).nbytes(), static_cast<size_t>(quantised_bytes(options, 3, inputs)));
}

TEST(QuantisedRows, HaveTheSameValuesOnEveryMachine) {
  for (const QuantisationOptions& options : {kInt8, kInt4}) {
    const at::Tensor rows = quantised(at::randn({1, 300}), options), values = dequantised(rows);
    for (const InstructionSet set : runnable_instruction_sets()) {
      for (const int64_t first : {0, 32, 256}) {
        std::vector<float> some(static_cast<size_t>(300 - first));
        dequantise_row(set)(layout_of(rows), rows.const_data_ptr<uint8_t>(), first, 300 - first, some.data());
        EXPECT_TRUE(at::tensor(some).equal(values[0].narrow(0, first, 300 - first)));
      }
    }
  }
}

TEST(QuantisedRows, AreNotReadOutOfOtherBytes) {
  EXPECT_THROW(layout_of(at::zeros({2, 64}, at::kByte)), InternalError);
  EXPECT_THROW(layout_of(at::zeros({2, 64})), InternalError);
}

struct QuantisedProducts : ::testing::TestWithParam<Precision> {};

// Matrices whose outputs share panels, of all row counts that have tiles of their own.
TEST_P(QuantisedProducts, ProductsOfQuantisedMatricesHaveTheBitsOfTheirValues) {
  for (const QuantisationOptions& options : {kInt8, kInt4}) {
    for (const int64_t inputs : {33, 64, 300}) {
      std::vector<at::Tensor> rows, values;
      for (const int64_t outputs : {40, 7, 90}) {
        rows.push_back(quantised(at::randn({outputs, inputs}), options));
        values.push_back(to_operand(dequantised(rows.back()), GetParam()));
      }
      const PackedMatrix dense = packed(values, GetParam()), narrow(GetParam(), rows), put = packed(rows, GetParam());
      EXPECT_EQ(narrow.outputs(), 137);
      const at::Tensor bias = at::randn({137});
      for (const int64_t count : {1, 2, 5, 13, 400}) {
        const at::Tensor x = to_operand(at::randn({count, inputs}), GetParam()), onto = at::randn({count, 137});
        const at::Tensor expected = onto.clone();
        multiply(x, dense, bias, expected, true);
        for (const PackedMatrix* matrix : {&narrow, &put}) {
          const at::Tensor out = onto.clone();
          multiply(x, *matrix, bias, out, true);
          ASSERT_TRUE(out.equal(expected)) << count << " x " << inputs;
        }
      }
    }
  }
}

TEST_P(QuantisedProducts, TransposesOfQuantisedMatricesAreThoseOfTheirValues) {
  for (const QuantisationOptions& options : {kInt8, kInt4}) {
    for (const int64_t inputs : {33, 64, 300}) {
      const at::Tensor rows = quantised(at::randn({71, inputs}), options);
      const PackedMatrix ours = packed_transposed(rows, GetParam()),
                         theirs = packed_transposed(to_operand(dequantised(rows), GetParam()), GetParam());
      std::vector<float> one(71), other(71);
      for (int64_t input = 0; input < inputs; ++input) {
        ours.row(input, one.data()), theirs.row(input, other.data());
        ASSERT_EQ(one, other) << input;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, QuantisedProducts, ::testing::Values(Precision::kFloat32, Precision::kBfloat16));

}  // namespace
}  // namespace sluice::models::quantised_rows_test
