#include "models/cuda/drawing_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/cuda/host_block.h"

// The code of the kernels, run on the host with the same blocks, threads, warps and lanes, against the cumulative sums of a
// softmax.
namespace sluice::models::drawing::drawing_kernel_test {
namespace {

using Thread = tests::HostBlock::Thread;

struct Drawn {
  std::vector<double> out;

  Drawn(const std::vector<float>& logits, int vocabulary, const std::vector<int32_t>& rows, const std::vector<double>& uniform,
        float scale) {
    DrawArguments in{.logits = logits.data(),
                     .rows = rows.data(),
                     .uniform = uniform.data(),
                     .scale = scale,
                     .draws = static_cast<int32_t>(rows.size()),
                     .vocabulary = vocabulary};
    out.assign(3 * rows.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<double> scratch(static_cast<size_t>(scratch_bytes(in)) / sizeof(double),
                                std::numeric_limits<double>::quiet_NaN());
    in.out = out.data(), in.scratch = scratch.data();
    tests::HostBlock host(kThreads, 1);
    const auto stretches = static_cast<int>(stretches_of(in));
    for_each_block(stretches, in.draws, [&](int x, int y) {
      SharedTops shared;
      host.run(x, y, [&](const Thread& thread) { tops(in, shared, thread); });
    });
    for_each_block(stretches, in.draws, [&](int x, int y) { host.run(x, y, [&](const Thread& thread) { masses(in, thread); }); });
    for_each_block(in.draws, 1, [&](int x, int y) {
      SharedChoice shared;
      host.run(x, y, [&](const Thread& thread) { choose(in, shared, thread); });
    });
  }

  template <class Code>
  static void for_each_block(int width, int height, const Code& code) {
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) code(x, y);
  }
};

std::vector<float> random_logits(RandomStream& random, int count, double spread) {
  std::vector<float> logits(static_cast<size_t>(count));
  for (float& logit : logits) logit = static_cast<float>(spread * random.normal());
  return logits;
}

TEST(DrawingKernel, DrawsByCumulativeShares) {
  RandomStream random(11, 0);
  for (int i = 0; i < 40; ++i) {
    const int vocabulary = 1 + static_cast<int>(random.below(i % 4 == 0 ? 9000 : 300)), row_count = 2;
    const std::vector<float> logits = random_logits(random, vocabulary * row_count, i % 3 == 0 ? 20 : 1);
    const double scale = i % 2 == 0 ? 1 : 1.7;
    const std::vector<int32_t> rows{1, 0, 1, 0};
    const std::vector<double> uniform{random.uniform(), random.uniform(), -1, i % 5 == 0 ? 1 - 1e-16 : 0};
    const Drawn drawn(logits, vocabulary, rows, uniform, static_cast<float>(scale));
    for (size_t d = 0; d < rows.size(); ++d) {
      const float* const row = logits.data() + rows[d] * vocabulary;
      const double top = *std::max_element(row, row + vocabulary);
      double total = 0, before = 0;
      for (int id = 0; id < vocabulary; ++id) total += std::exp((row[id] - top) * scale);
      const int chosen = static_cast<int>(drawn.out[3 * d]);
      ASSERT_TRUE(chosen >= 0 && chosen < vocabulary);
      EXPECT_NEAR(drawn.out[3 * d + 1] * scale - std::log(drawn.out[3 * d + 2]), (row[chosen] - top) * scale - std::log(total),
                  1e-5)
          << "case " << i;
      if (uniform[d] < 0) {
        EXPECT_EQ(chosen, std::max_element(row, row + vocabulary) - row);
        continue;
      }
      for (int id = 0; id < chosen; ++id) before += std::exp((row[id] - top) * scale);
      EXPECT_LE(before / total, uniform[d] + 1e-6) << "case " << i << ", draw " << d;
      EXPECT_GE((before + std::exp((row[chosen] - top) * scale)) / total, uniform[d] - 1e-6) << "case " << i << ", draw " << d;
      EXPECT_GT(std::exp((row[chosen] - top) * scale), 0);
    }
  }
}

TEST(DrawingKernel, FindsWhatIsNotFinite) {
  RandomStream random(12, 0);
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = random_logits(random, 5000, 1);
    logits[4321] = wrong;
    EXPECT_EQ(Drawn(logits, 5000, {0}, {0.3}, 1).out[0], -1);
  }
}

}  // namespace
}  // namespace sluice::models::drawing::drawing_kernel_test
