#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "base/numbers/random.h"
#include "tests/models/cuda/host_training_kernels.h"

// The code of our kernels of training, run on the host with their blocks, threads, warps and lanes, on random shapes against
// formulas that are written down plainly in double precision. Gradients are measured: a number is moved a little both ways.
namespace sluice::models::training_kernels_test {
namespace {

using Doubles = std::vector<double>;

constexpr int kCases = 1000;
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();

const TrainingKernels& kernels() { return tests::host_training_kernels(); }

/// Random numbers, and shapes of which some are multiples of what a thread takes.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed, 0) {}

  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
  }
  bool chance() { return random_.uniform() < 0.5; }
  int64_t size(int64_t most) { return chance() ? between(1, most) : 8 * between(1, most / 8); }
  std::vector<float> normals(int64_t count, double deviation = 1) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(deviation * random_.normal()));
    return numbers;
  }
  /// As an operand of either type holds them.
  std::vector<float> operands(int64_t count, bool narrow) {
    std::vector<float> numbers = normals(count);
    if (narrow) std::ranges::transform(numbers, numbers.begin(), [](float x) { return static_cast<float>(c10::BFloat16(x)); });
    return numbers;
  }

 private:
  RandomStream random_;
};

/// Memory of an operand of either type.
class Operand {
 public:
  Operand(int64_t count, bool narrow) : Operand(std::vector<float>(static_cast<size_t>(count), kNothing), narrow) {}
  Operand(const std::vector<float>& values, bool narrow)
      : narrow_(narrow), wide_values_(values), narrow_values_(values.begin(), values.end()) {}

  void* data() { return narrow_ ? static_cast<void*>(narrow_values_.data()) : wide_values_.data(); }
  double operator[](int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return narrow_ ? static_cast<double>(static_cast<float>(narrow_values_[at])) : double{wide_values_[at]};
  }

 private:
  bool narrow_;
  std::vector<float> wide_values_;
  std::vector<c10::BFloat16> narrow_values_;
};

double tolerance_of(bool narrow) { return narrow ? 5e-3 : 2e-5; }

void expect_near(double ours, double theirs, double tolerance, int64_t at) {
  ASSERT_NEAR(ours, theirs, tolerance * (1 + std::abs(theirs))) << "number " << at;
}

double slope_of(const std::function<double(double)>& f, double x) {
  constexpr double kStep = 1e-5;
  return (f(x + kStep) - f(x - kStep)) / (2 * kStep);
}

Doubles doubles_of(const std::vector<float>& numbers) { return {numbers.begin(), numbers.end()}; }

// Calls check(i), which may fail, for i below `count`.
template <class Check>
void for_all(int64_t count, const Check& check) {
  for (int64_t i = 0; i < count && !::testing::Test::HasFatalFailure(); ++i) check(i);
}

struct NormCase {
  Doubles weight;
  double eps;
  bool from_one;

  Doubles of(const Doubles& x) const {
    double squares = 0;
    for (const double number : x) squares += number * number;
    const double rms = std::sqrt(squares / static_cast<double>(x.size()) + eps);
    Doubles y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / rms * (weight[i] + (from_one ? 1 : 0)));
    return y;
  }
};

TEST(TrainingKernels, NormIsItsFormula) {
  Dice dice(1);
  for_all(kCases, [&](int64_t) {
    const int64_t rows = dice.between(0, 2), size = dice.size(200);
    const bool narrow = dice.chance();
    const auto x = dice.normals(rows * size, 3), weight = dice.normals(size);
    const NormCase norm{doubles_of(weight), 1e-5, dice.chance()};
    Operand out(rows * size, narrow);
    std::vector<float> inverses(static_cast<size_t>(rows), kNothing);
    ASSERT_EQ(kernels().rms_norm({.x = x.data(),
                                  .weight = weight.data(),
                                  .out = out.data(),
                                  .inverses = inverses.data(),
                                  .bfloat16 = narrow,
                                  .from_one = norm.from_one,
                                  .eps = 1e-5f,
                                  .rows = rows,
                                  .size = size}),
              nullptr);
    const auto grad = dice.operands(rows * size, narrow);
    Operand of_out(grad, narrow);
    const int64_t slices = dice.between(1, 3);
    std::vector<float> of_x(x.size(), kNothing), of_weight(static_cast<size_t>(slices * size), kNothing);
    ASSERT_EQ(kernels().rms_norm_backward({.grad = of_out.data(),
                                           .x = x.data(),
                                           .weight = weight.data(),
                                           .inverses = inverses.data(),
                                           .of_x = of_x.data(),
                                           .of_weight = of_weight.data(),
                                           .bfloat16 = narrow,
                                           .from_one = norm.from_one,
                                           .rows = rows,
                                           .size = size,
                                           .slices = slices}),
              nullptr);
    Doubles weight_slopes(static_cast<size_t>(size), 0);
    for_all(rows, [&](int64_t row) {
      const Doubles in(x.begin() + row * size, x.begin() + (row + 1) * size), expected = norm.of(in);
      double squares = 0, along = 0;
      for (int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<size_t>(i);
        squares += in[at] * in[at];
        along += double{grad[static_cast<size_t>(row * size + i)]} * expected[at];
      }
      const double rms = std::sqrt(squares / static_cast<double>(size) + norm.eps);
      for_all(size, [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        const double g = grad[static_cast<size_t>(row * size + i)], w = norm.weight[at] + (norm.from_one ? 1 : 0);
        expect_near(out[row * size + i], expected[at], tolerance_of(narrow), i);
        expect_near(of_x[static_cast<size_t>(row * size + i)], (g * w - in[at] / rms * along / static_cast<double>(size)) / rms,
                    tolerance_of(false), i);
        weight_slopes[at] += g * in[at] / rms;
      });
    });
    for_all(size, [&](int64_t i) {
      double sum = 0;
      for (int64_t slice = 0; slice < slices; ++slice) sum += of_weight[static_cast<size_t>(slice * size + i)];
      expect_near(sum, weight_slopes[static_cast<size_t>(i)], tolerance_of(false), i);
    });
  });
}

double activated(GateKind kind, double x) {
  if (kind == GateKind::kSilu) return x / (1 + std::exp(-x));
  if (kind == GateKind::kGelu) return x / 2 * (1 + std::erf(x / std::sqrt(2)));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(TrainingKernels, GatesAreTheirFormulas) {
  Dice dice(2);
  for_all(kCases, [&](int64_t which) {
    const auto kind = static_cast<GateKind>(which % 3);
    const int64_t count = dice.chance() ? dice.between(0, 40) : dice.size(700);
    const bool narrow = dice.chance(), narrow_result = narrow && dice.chance();
    const auto gate = dice.normals(count, 3), up = dice.normals(count), grad = dice.operands(count, narrow);
    Operand out(count, narrow), of_out(grad, narrow), of_gate(count, narrow_result), of_up(count, narrow_result);
    ASSERT_EQ(kernels().gated(
                  {.gate = gate.data(), .up = up.data(), .out = out.data(), .bfloat16 = narrow, .kind = kind, .count = count}),
              nullptr);
    ASSERT_EQ(kernels().gated_backward({.grad = of_out.data(),
                                        .gate = gate.data(),
                                        .up = up.data(),
                                        .of_gate = of_gate.data(),
                                        .of_up = of_up.data(),
                                        .bfloat16 = narrow,
                                        .narrow_result = narrow_result,
                                        .kind = kind,
                                        .count = count}),
              nullptr);
    for_all(count, [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const double value = activated(kind, gate[at]);
      expect_near(out[i], value * up[at], tolerance_of(narrow), i);
      expect_near(of_up[i], grad[at] * value, tolerance_of(narrow_result), i);
      const double slope = slope_of([&](double x) { return activated(kind, x); }, gate[at]);
      expect_near(of_gate[i], double{grad[at]} * up[at] * slope, tolerance_of(narrow_result), i);
    });
  });
  EXPECT_NE(kernels().gated_backward({.narrow_result = true}), nullptr);
}

TEST(TrainingKernels, RotaryPositionsAreTheirFormula) {
  Dice dice(3);
  for_all(kCases, [&](int64_t) {
    const int64_t tokens = dice.between(0, 3), heads = dice.between(1, 4), half = dice.size(32);
    const int64_t head_dim = 2 * half + (dice.chance() ? 0 : dice.size(16)), count = tokens * heads * head_dim;
    const bool back = dice.chance(), narrow = dice.chance(), from_narrow = narrow && back, to_narrow = narrow && !back;
    const auto x = dice.operands(count, from_narrow), angles = dice.normals(tokens * 2 * half);
    Operand in(x, from_narrow), out(count, to_narrow);
    ASSERT_EQ(kernels().rotary({.x = in.data(),
                                .angles = angles.data(),
                                .out = out.data(),
                                .bfloat16_in = from_narrow,
                                .bfloat16_out = to_narrow,
                                .back = back,
                                .tokens = tokens,
                                .heads = static_cast<int32_t>(heads),
                                .head_dim = static_cast<int32_t>(head_dim),
                                .dims = static_cast<int32_t>(2 * half)}),
              nullptr);
    for_all(count, [&](int64_t i) {
      const int64_t token = i / (heads * head_dim), place = i % head_dim, first = i - place;
      if (place >= 2 * half) return expect_near(out[i], in[i], tolerance_of(to_narrow), i);
      const int64_t pair = place % half;
      const double cosine = angles[static_cast<size_t>(token * 2 * half + pair)];
      const double sine = (back ? -1 : 1) * angles[static_cast<size_t>(token * 2 * half + half + pair)];
      const double a = in[first + pair], b = in[first + half + pair];
      expect_near(out[i], place < half ? a * cosine - b * sine : b * cosine + a * sine, tolerance_of(to_narrow), i);
    });
  });
  EXPECT_NE(kernels().rotary({.bfloat16_in = true, .bfloat16_out = true}), nullptr);
}

/// One row of logits.
struct LogitCase {
  double temperature, softcap;
  size_t target;

  struct Result {
    double logprob, entropy, log_sum;
  };

  Result of(const Doubles& logits) const {
    Doubles z;
    for (const double logit : logits) z.push_back((softcap > 0 ? softcap * std::tanh(logit / softcap) : logit) / temperature);
    const double top = *std::ranges::max_element(z);
    double sum = 0, entropy = 0;
    for (const double one : z) sum += std::exp(one - top);
    const double log_sum = top + std::log(sum);
    for (const double one : z) entropy -= std::exp(one - log_sum) * (one - log_sum);
    return {z[target] - log_sum, entropy, log_sum};
  }
};

TEST(TrainingKernels, LogProbabilitiesAreTheirFormula) {
  Dice dice(4);
  for_all(kCases, [&](int64_t which) {
    const int64_t rows = dice.between(0, 2), size = which % 20 == 0 ? dice.size(1500) : dice.size(60);
    const bool narrow = dice.chance(), entropy = dice.chance(), with_logprobs = !entropy || dice.chance();
    auto logits = dice.normals(rows * size, dice.chance() ? 2 : 20);
    const auto of_logprobs = dice.normals(rows), of_entropies = dice.normals(rows);
    const double softcap = dice.chance() ? 0 : 5, temperature = dice.chance() ? 1 : 0.7;
    const LogitScaling scaling{static_cast<float>(1 / temperature), static_cast<float>(softcap),
                               softcap > 0 ? static_cast<float>(1 / softcap) : 0};
    std::vector<int64_t> targets;
    for (int64_t row = 0; row < rows; ++row) targets.push_back(dice.between(0, size - 1));
    std::vector<float> logprobs(static_cast<size_t>(rows), kNothing), log_sums = logprobs, entropies = logprobs;
    ASSERT_EQ(kernels().logit_rows({.logits = logits.data(),
                                    .targets = targets.data(),
                                    .logprobs = logprobs.data(),
                                    .log_sums = log_sums.data(),
                                    .entropies = entropy ? entropies.data() : nullptr,
                                    .scaling = scaling,
                                    .rows = rows,
                                    .vocabulary = size}),
              nullptr);
    const auto before = logits;
    Operand slopes(rows * size, narrow);
    ASSERT_EQ(kernels().logit_slopes({.logits = logits.data(),
                                      .targets = targets.data(),
                                      .log_sums = log_sums.data(),
                                      .entropies = entropy ? entropies.data() : nullptr,
                                      .of_logprobs = with_logprobs ? of_logprobs.data() : nullptr,
                                      .of_entropies = entropy ? of_entropies.data() : nullptr,
                                      .slopes = narrow ? slopes.data() : logits.data(),
                                      .bfloat16 = narrow,
                                      .scaling = scaling,
                                      .rows = rows,
                                      .vocabulary = size}),
              nullptr);
    for_all(rows, [&](int64_t row) {
      const auto at = static_cast<size_t>(row);
      const LogitCase of_row{temperature, softcap, static_cast<size_t>(targets[at])};
      Doubles in(before.begin() + row * size, before.begin() + (row + 1) * size);
      const LogitCase::Result expected = of_row.of(in);
      expect_near(logprobs[at], expected.logprob, 2e-5, row);
      expect_near(log_sums[at], expected.log_sum, 2e-6, row);
      if (entropy) expect_near(entropies[at], expected.entropy, 2e-5, row);
      if (size > 100) return;  // a slope costs as much as a row
      for_all(size, [&](int64_t i) {
        const auto loss = [&](double moved) {
          Doubles there = in;
          there[static_cast<size_t>(i)] = moved;
          const LogitCase::Result result = of_row.of(there);
          return (with_logprobs ? double{of_logprobs[at]} * result.logprob : 0) +
                 (entropy ? double{of_entropies[at]} * result.entropy : 0);
        };
        const double ours = narrow ? slopes[row * size + i] : double{logits[static_cast<size_t>(row * size + i)]};
        expect_near(ours, slope_of(loss, in[static_cast<size_t>(i)]), narrow ? 5e-3 : 5e-5, i);
      });
    });
  });
}

TEST(TrainingKernels, StepsAreTheirFormula) {
  Dice dice(5);
  for_all(kCases, [&](int64_t) {
    const int64_t count = dice.chance() ? dice.between(0, 9) : dice.size(600);
    auto weights = dice.normals(count), gradients = dice.normals(count), first = dice.normals(count),
         second = dice.normals(count);
    std::ranges::transform(second, second.begin(), [](float x) { return x * x; });
    const auto before = weights, gradient = gradients, mean = first, square = second;
    std::vector<float> written(static_cast<size_t>(count), kNothing);
    std::vector<c10::BFloat16> narrow(static_cast<size_t>(count), c10::BFloat16(kNothing));
    const int64_t kind = dice.between(0, 2);  // of what is written besides: nothing, floats, bfloat16
    void* const kinds[] = {nullptr, written.data(), narrow.data()};
    ASSERT_EQ(kernels().adamw({.weights = weights.data(),
                               .gradients = gradients.data(),
                               .first_moments = first.data(),
                               .second_moments = second.data(),
                               .written = kinds[kind],
                               .bfloat16 = kind == 2,
                               .gradient_scale = 0.5f,
                               .new_first = 0.1f,
                               .new_second = 0.01f,
                               .kept = 0.9f,
                               .step_size = 0.2f,
                               .root_scale = 1.5f,
                               .epsilon = 1e-3f,
                               .count = count}),
              nullptr);
    for_all(count, [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const double g = gradient[at] * 0.5, m = 0.9 * mean[at] + 0.1 * g, v = 0.99 * square[at] + 0.01 * g * g;
      expect_near(first[at], m, 1e-6, i);
      expect_near(second[at], v, 1e-6, i);
      expect_near(weights[at], 0.9 * before[at] - 0.2 * m / (std::sqrt(v) * 1.5 + 1e-3), 1e-5, i);
      ASSERT_EQ(gradients[at], 0);
      if (kind == 1) ASSERT_EQ(written[at], weights[at]);
      if (kind == 2) ASSERT_EQ(narrow[at], c10::BFloat16(weights[at]));
    });
  });
}

TEST(TrainingKernels, SquaresAreAddedUpInDoublePrecision) {
  Dice dice(6);
  for_all(kCases / 5, [&](int64_t which) {
    const int64_t count = which % 20 == 0 ? dice.between(kSquaresOfABlock, 3 * kSquaresOfABlock) : dice.between(0, 1500);
    const auto values = dice.normals(count);
    std::vector<double> partial(static_cast<size_t>(count / kSquaresOfABlock + 1), double{kNothing});
    double total = kNothing, expected = 0;
    for (const float value : values) expected += double{value} * double{value};
    ASSERT_EQ(kernels().squares({.values = values.data(), .partial = partial.data(), .total = &total, .count = count}), nullptr);
    ASSERT_NEAR(total, expected, 1e-12 * (1 + expected));
  });
}

}  // namespace
}  // namespace sluice::models::training_kernels_test
