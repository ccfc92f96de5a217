#include "models/cuda/skinny_product_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/cuda/host_block.h"

// The code of the kernel, run on the host with the same blocks, threads, warps and lanes, against sums of products.
namespace sluice::models::skinny_product::skinny_product_test {
namespace {

using gpu::Bfloat16, gpu::Element;

std::vector<Bfloat16> normal(RandomStream& random, int64_t count) {
  std::vector<Bfloat16> numbers(static_cast<size_t>(count));
  for (Bfloat16& number : numbers) number = Element<Bfloat16>::narrow(static_cast<float>(random.normal()));
  return numbers;
}

double dot(const std::vector<Bfloat16>& a, const std::vector<Bfloat16>& b, int row_a, int row_b, int size) {
  double sum = 0;
  for (int k = 0; k < size; ++k)
    sum += Element<Bfloat16>::wide(a[static_cast<size_t>(row_a * size + k)]) *
           Element<Bfloat16>::wide(b[static_cast<size_t>(row_b * size + k)]);
  return sum;
}

template <int kTiles>
void run(const StepProductArguments& in, tests::HostBlock& host) {
  for (int block = 0; block < blocks_of<kTiles>(in); ++block) {
    Shared<kTiles> shared;
    std::fill_n(reinterpret_cast<float*>(&shared), sizeof shared / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    host.run(block, 0, [&](const tests::HostBlock::Thread& thread) { multiply<kTiles>(in, shared, thread); });
  }
}

// Every number of tiles for a few random shapes; what lies beside the result stays as it is.
template <int kTiles>
void expect_products(int cases) {
  tests::HostBlock host(kThreads, 1);
  RandomStream random(1, kTiles);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random.below(static_cast<uint64_t>(most))); };
  for (int i = 0; i < cases; ++i) {
    const int rows = up_to(kRowsOfTile), inputs = kInputs * up_to(40), outputs = up_to(70), apart = outputs + up_to(5);
    const std::vector<Bfloat16> x = normal(random, rows * inputs), w = normal(random, outputs * inputs);
    std::vector<float> y(static_cast<size_t>(rows * apart), -1);
    run<kTiles>({.x = x.data(), .w = w.data(), .y = y.data(), .rows = rows, .inputs = inputs, .outputs = outputs, .apart = apart},
                host);
    for (int row = 0; row < rows; ++row) {
      for (int n = 0; n < apart; ++n) {
        const double expected = n < outputs ? dot(x, w, row, n, inputs) : -1;
        ASSERT_NEAR(y[static_cast<size_t>(row * apart + n)], expected, 1e-5 * inputs)
            << rows << " x " << inputs << " x " << outputs << ", row " << row << ", output " << n;
      }
    }
  }
}

template <int kTiles>
void expect_gates(int cases) {
  tests::HostBlock host(kThreads, 1);
  RandomStream random(2, kTiles);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random.below(static_cast<uint64_t>(most))); };
  for (int i = 0; i < cases; ++i) {
    const int rows = up_to(kRowsOfTile), inputs = kInputs * up_to(20), size = up_to(50);
    const std::vector<Bfloat16> x = normal(random, rows * inputs), gate = normal(random, size * inputs),
                                up = normal(random, size * inputs);
    std::vector<Bfloat16> out(static_cast<size_t>(rows * size));
    const std::vector<float> bias(static_cast<size_t>(size), 0.5F);
    const GatedProductArguments in{
        .x = x.data(),
        .gate = gate.data(),
        .up = up.data(),
        .inputs = inputs,
        .of = {.up_bias = i % 2 == 0 ? bias.data() : nullptr, .out = out.data(), .rows = rows, .size = size}};
    for (int block = 0; block < gated_blocks_of<kTiles>(in); ++block) {
      Shared<kTiles> shared;
      host.run(block, 0, [&](const tests::HostBlock::Thread& thread) { multiply_gated<kTiles>(in, shared, thread); });
    }
    for (int row = 0; row < rows; ++row) {
      for (int n = 0; n < size; ++n) {
        const double g = dot(x, gate, row, n, inputs),
                     expected = g / (1 + std::exp(-g)) * (dot(x, up, row, n, inputs) + (i % 2 == 0 ? 0.5 : 0));
        ASSERT_NEAR(Element<Bfloat16>::wide(out[static_cast<size_t>(row * size + n)]), expected, 5e-3 * (1 + std::abs(expected)))
            << rows << " x " << inputs << " x " << size << ", row " << row << ", output " << n;
      }
    }
  }
}

TEST(SkinnyProduct, IsTheSumOfProducts) {
  expect_products<1>(15);
  expect_products<2>(10);
  expect_products<4>(10);
}

TEST(SkinnyProduct, OfGatesIsTheirs) {
  expect_gates<2>(10);
  expect_gates<4>(10);
}

}  // namespace
}  // namespace sluice::models::skinny_product::skinny_product_test
