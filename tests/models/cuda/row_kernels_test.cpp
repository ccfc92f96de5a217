#include "models/cuda/row_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/cuda/host_block.h"

// The code of the kernels, run on the host with the same blocks, threads, warps and lanes, against formulas in double precision.
namespace sluice::models::row_kernels::row_kernels_test {
namespace {

constexpr double kRounding = 5e-3;  // of bfloat16, relative
constexpr double kExact = 1e-5;     // of float32
using Numbers = std::vector<float>;

Bfloat16 narrow(double x) { return Element<Bfloat16>::narrow(static_cast<float>(x)); }
double wide(Bfloat16 x) { return Element<Bfloat16>::wide(x); }

class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed, 0) {}
  int between(int least, int most) { return least + static_cast<int>(random_.below(static_cast<uint64_t>(most - least + 1))); }
  bool chance() { return random_.uniform() < 0.5; }
  double normal() { return random_.normal(); }
  Numbers numbers(int64_t count) {
    Numbers drawn(static_cast<size_t>(count));
    for (float& number : drawn) number = static_cast<float>(random_.normal());
    return drawn;
  }
  std::vector<Bfloat16> narrow_numbers(int64_t count) {
    std::vector<Bfloat16> drawn;
    for (const float number : numbers(count)) drawn.push_back(narrow(number));
    return drawn;
  }

 private:
  RandomStream random_;
};

/// x, or x / rms(x) * weights.
std::vector<double> normalised(std::vector<double> x, const float* weights, bool from_one, double eps) {
  if (weights == nullptr) return x;
  double squares = 0;
  for (const double number : x) squares += number * number;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * (weights[i] + (from_one ? 1.0 : 0.0));
  return x;
}

void run_rows(int rows, int columns, tests::HostBlock& host, const std::function<void(const tests::HostBlock::Thread&)>& code) {
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) host.run(x, y, code);
}

TEST(RowKernels, ResidualIsTheFormula) {
  tests::HostBlock host(kThreads, 1);
  Drawn drawn(1);
  for (int i = 0; i < 200; ++i) {
    const int rows = drawn.between(1, 3), size = kOfRows * drawn.between(1, 70), vocabulary = 5;
    const bool embeds = drawn.chance(), adds = !embeds && drawn.chance(), chooses = !embeds && !adds && drawn.chance();
    const Numbers begin = drawn.numbers(int64_t{3} * size), added = drawn.numbers(rows * size), bias = drawn.numbers(size),
                  after = drawn.numbers(size), before = drawn.numbers(size);
    const std::vector<Bfloat16> embedding = drawn.narrow_numbers(vocabulary * size);
    Numbers x = begin;
    std::vector<Bfloat16> read(static_cast<size_t>(rows * size), narrow(7));
    std::vector<int32_t> tokens, chosen;
    for (int row = 0; row < rows; ++row)
      tokens.push_back(drawn.between(0, vocabulary - 1)), chosen.push_back(drawn.between(0, 2));
    const ResidualArguments in{.x = x.data(),
                               .embedding = embeds ? embedding.data() : nullptr,
                               .tokens = tokens.data(),
                               .embedding_scale = 1.5,
                               .added = adds ? added.data() : nullptr,
                               .bias = drawn.chance() ? bias.data() : nullptr,
                               .after = drawn.chance() ? after.data() : nullptr,
                               .before = drawn.chance() ? before.data() : nullptr,
                               .chosen = chooses ? chosen.data() : nullptr,
                               .read = read.data(),
                               .from_one = drawn.chance(),
                               .eps = 1e-3F,
                               .rows = rows,
                               .size = size};
    for (int row = 0; row < rows; ++row) {
      Shared shared;
      std::fill_n(&shared.sums[0][0], 2 * kWarps, std::numeric_limits<float>::quiet_NaN());
      const auto run = [&](auto fours) {
        host.run(row, 0, [&](const tests::HostBlock::Thread& thread) { residual<decltype(fours)::value>(in, shared, thread); });
      };
      i % 2 == 0 ? run(std::integral_constant<int, kMostFours>()) : with_fours(size, run);
    }
    for (int row = 0; row < rows; ++row) {
      const auto of_x = static_cast<size_t>((chooses ? chosen[static_cast<size_t>(row)] : row) * size);
      std::vector<double> expected(begin.begin() + static_cast<std::ptrdiff_t>(of_x),
                                   begin.begin() + static_cast<std::ptrdiff_t>(of_x) + size);
      std::vector<double> more(static_cast<size_t>(size));
      for (size_t n = 0; n < more.size(); ++n) {
        if (embeds) expected[n] = 1.5 * wide(embedding[static_cast<size_t>(tokens[static_cast<size_t>(row)] * size) + n]);
        if (adds) more[n] = added[static_cast<size_t>(row * size) + n] + (in.bias != nullptr ? bias[n] : 0.0F);
      }
      if (adds) more = normalised(more, in.after, in.from_one, in.eps);
      for (size_t n = 0; n < more.size(); ++n) expected[n] += more[n];
      const std::vector<double> expected_read = normalised(expected, in.before, in.from_one, in.eps);
      for (size_t n = 0; n < expected.size(); ++n) {
        ASSERT_NEAR(x[of_x + n], expected[n], kExact * (1 + std::abs(expected[n]))) << "case " << i;
        ASSERT_NEAR(wide(read[static_cast<size_t>(row * size) + n]), expected_read[n],
                    kRounding * (0.1 + std::abs(expected_read[n])))
            << "case " << i;
      }
    }
  }
}

TEST(RowKernels, HeadsAreTheFormula) {
  tests::HostBlock of_heads(kHeadThreads, 1);
  Drawn drawn(2);
  for (int i = 0; i < 300; ++i) {
    const int rows = drawn.between(1, 3), kv_heads = drawn.between(1, 2), heads_ = kv_heads * drawn.between(1, 4);
    const int dim = 8 * drawn.between(1, 20), rotary_dims = drawn.chance() ? dim : 4 * drawn.between(1, dim / 4), positions = 6;
    const int all = heads_ + 2 * kv_heads;
    const Numbers projected = drawn.numbers(rows * all * dim), bias = drawn.numbers(all * dim), norm = drawn.numbers(2 * dim);
    const Numbers angles = drawn.numbers(positions * rotary_dims);
    std::vector<Bfloat16> query(static_cast<size_t>(rows * heads_ * dim), narrow(7));
    std::vector<Bfloat16> keys(static_cast<size_t>(9 * kv_heads * dim), narrow(7)), values = keys;
    std::vector<int32_t> at, slots;
    for (int row = 0; row < rows; ++row)
      at.push_back(drawn.between(0, positions - 1)), slots.push_back(row == 1 ? -1 : 2 * row + 1);
    const bool biased = drawn.chance(), norms = drawn.chance();
    const HeadsArguments in{.projected = projected.data(),
                            .query_bias = biased ? bias.data() : nullptr,
                            .key_bias = biased ? bias.data() + heads_ * dim : nullptr,
                            .value_bias = biased ? bias.data() + (heads_ + kv_heads) * dim : nullptr,
                            .query_norm = norms ? norm.data() : nullptr,
                            .key_norm = norms ? norm.data() + dim : nullptr,
                            .angles = angles.data(),
                            .positions = at.data(),
                            .slots = slots.data(),
                            .query = query.data(),
                            .keys = keys.data(),
                            .values = values.data(),
                            .from_one = drawn.chance(),
                            .neighbours = drawn.chance(),
                            .eps = 1e-3F,
                            .rows = rows,
                            .heads = heads_,
                            .kv_heads = kv_heads,
                            .head_dim = dim,
                            .rotary_dims = rotary_dims};
    run_rows(head_blocks(in), rows, of_heads, [&](const tests::HostBlock::Thread& thread) { heads(in, thread); });
    for (int row = 0; row < rows; ++row) {
      const int slot = slots[static_cast<size_t>(row)];
      for (int h = 0; h < all; ++h) {
        std::vector<double> head;
        for (int d = 0; d < dim; ++d)
          head.push_back(projected[static_cast<size_t>((row * all + h) * dim + d)] +
                         (biased ? bias[static_cast<size_t>(h * dim + d)] : 0.0F));
        const bool is_value = h >= heads_ + kv_heads;
        if (norms && !is_value) head = normalised(head, norm.data() + (h < heads_ ? 0 : dim), in.from_one, in.eps);
        std::vector<double> expected = head;
        const float* of_row = angles.data() + at[static_cast<size_t>(row)] * rotary_dims;
        for (int d = 0; d < rotary_dims / 2 && !is_value; ++d) {
          const auto first = static_cast<size_t>(in.neighbours ? 2 * d : d);
          const size_t second = first + static_cast<size_t>(in.neighbours ? 1 : rotary_dims / 2);
          expected[first] = head[first] * of_row[d] - head[second] * of_row[rotary_dims / 2 + d];
          expected[second] = head[second] * of_row[d] + head[first] * of_row[rotary_dims / 2 + d];
        }
        for (int d = 0; d < dim; ++d) {
          const double ours =
              h < heads_ ? wide(query[static_cast<size_t>((row * heads_ + h) * dim + d)])
              : slot < 0
                  ? expected[static_cast<size_t>(d)]
                  : wide((is_value ? values : keys)[static_cast<size_t>((slot * kv_heads + (h - heads_) % kv_heads) * dim + d)]);
          ASSERT_NEAR(ours, expected[static_cast<size_t>(d)], kRounding * (0.1 + std::abs(expected[static_cast<size_t>(d)])))
              << "case " << i << ", head " << h << ", dimension " << d;
        }
      }
    }
    for (size_t n = 0; n < static_cast<size_t>(kv_heads * dim); ++n)
      ASSERT_EQ(wide(keys[n]), 7) << "of a slot that is not written";
  }
}

double activated_plainly(GateKind gate, double x) {
  if (gate == GateKind::kSilu) return x / (1 + std::exp(-x));
  if (gate == GateKind::kGelu) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(RowKernels, GateIsTheFormula) {
  tests::HostBlock host(kThreads, 1);
  Drawn drawn(3);
  for (int i = 0; i < 200; ++i) {
    const int rows = drawn.between(1, 3), size = kOfRows * drawn.between(1, 50);
    const bool gated = drawn.chance(), biased = drawn.chance();
    const Numbers projected = drawn.numbers(rows * size * 2), bias = drawn.numbers(2 * size);
    std::vector<Bfloat16> out(static_cast<size_t>(rows * size), narrow(7));
    const GateArguments in{.projected = projected.data(),
                           .gate_bias = biased ? bias.data() : nullptr,
                           .up_bias = biased ? bias.data() + size : nullptr,
                           .out = out.data(),
                           .gated = gated,
                           .gate = static_cast<GateKind>(drawn.between(0, 2)),
                           .rows = rows,
                           .size = size};
    run_rows(rows, gate_blocks(in), host, [&](const tests::HostBlock::Thread& thread) { gate(in, thread); });
    for (int row = 0; row < rows; ++row) {
      for (int n = 0; n < size; ++n) {
        const float* const of_row = projected.data() + row * size * (gated ? 2 : 1);
        const double up = of_row[(gated ? size : 0) + n] + (biased ? bias[static_cast<size_t>(size + n)] : 0.0F);
        const double expected = gated
                                    ? activated_plainly(in.gate, of_row[n] + (biased ? bias[static_cast<size_t>(n)] : 0.0F)) * up
                                    : activated_plainly(in.gate, up);
        ASSERT_NEAR(wide(out[static_cast<size_t>(row * size + n)]), expected, kRounding * (0.1 + std::abs(expected)))
            << "case " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::models::row_kernels::row_kernels_test
