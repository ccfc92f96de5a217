#include "models/layers/ragged_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "models/kernels/attention_kernels.h"
#include "models/kernels/parallel.h"
#include "models/layers/gradient.h"
#include "models/layers/operand.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/tensors.h"

namespace sluice::models::ragged_attention_test {
namespace {

using Offsets = std::vector<int64_t>;

struct Inputs {
  at::Tensor query, key, value;

  Inputs(const ModelConfig& config, int64_t tokens)
      : query(random(tokens, config.heads * config.head_dim)),
        key(random(tokens, config.kv_heads * config.head_dim)),
        value(random(tokens, config.kv_heads * config.head_dim)) {}

  static at::Tensor random(int64_t rows, int64_t columns) { return at::randn({rows, columns}).set_requires_grad(true); }

  // Copies in double precision with gradients of their own.
  Inputs in_double() const {
    Inputs copy = *this;
    for (at::Tensor* x : {&copy.query, &copy.key, &copy.value}) *x = x->detach().to(at::kDouble).set_requires_grad(true);
    return copy;
  }
};

// x[L,heads,D] rotated: the pairs (i, i + dims/2) of the first dims, or (2i, 2i + 1), are complex numbers that are rotated by
// position * theta^(-2i/dims).
at::Tensor rotated(const at::Tensor& x, const ModelConfig& config) {
  if (config.learned_positions) return x;
  const int64_t dims = config.rotary_dims(), half = dims / 2;
  const at::Tensor frequencies = at::pow(config.rope.theta, at::arange(half, x.options()).mul(-1.0 / static_cast<double>(half)));
  const at::Tensor angles = at::outer(at::arange(x.size(0), x.options()), frequencies).unsqueeze(1);  // [L,1,dims/2]
  const bool neighbours = config.rotary_neighbours;
  const at::Tensor a = neighbours ? x.slice(2, 0, dims, 2) : x.narrow(2, 0, half);
  const at::Tensor b = neighbours ? x.slice(2, 1, dims, 2) : x.narrow(2, half, half);
  const at::Tensor first = a * angles.cos() - b * angles.sin(), second = b * angles.cos() + a * angles.sin();
  const at::Tensor first_dims = neighbours ? at::stack({first, second}, 3).flatten(2) : at::cat({first, second}, 2);
  return at::cat({first_dims, x.slice(2, dims)}, 2);
}

// The definition, composed of ATen operators, one sample after the other.
at::Tensor reference(const Inputs& in, const ModelConfig& config, const Offsets& offsets, int64_t window = 0) {
  std::vector<at::Tensor> outputs;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    const int64_t length = offsets[s + 1] - offsets[s];
    const auto heads_of = [&](const at::Tensor& x, int64_t heads) {
      return x.narrow(0, offsets[s], length).reshape({length, heads, config.head_dim});
    };
    const int64_t repeats = config.heads / config.kv_heads;
    const at::Tensor query = rotated(heads_of(in.query, config.heads), config).transpose(0, 1);
    const at::Tensor key = rotated(heads_of(in.key, config.kv_heads), config).transpose(0, 1).repeat_interleave(repeats, 0);
    const at::Tensor value = heads_of(in.value, config.kv_heads).transpose(0, 1).repeat_interleave(repeats, 0);
    at::Tensor hidden = at::ones({length, length}, at::kBool).triu(1);
    if (window > 0) hidden = hidden.logical_or(at::ones({length, length}, at::kBool).tril(-window));
    const double scale = config.attention_scale == 0 ? 1 / std::sqrt(config.head_dim) : config.attention_scale;
    at::Tensor scores = at::matmul(query, key.transpose(1, 2)).mul(scale);
    if (config.attention_softcap != 0) scores = scores.div(config.attention_softcap).tanh().mul(config.attention_softcap);
    const at::Tensor masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    outputs.push_back(
        at::matmul(at::softmax(masked, 2), value).transpose(0, 1).reshape({length, config.heads * config.head_dim}));
  }
  return at::cat(outputs);
}

// From queries and keys before they are rotated; differentiable where they need a gradient.
at::Tensor attend(const Inputs& in, const ModelConfig& config, const Offsets& offsets, int64_t window = 0,
                  Precision precision = Precision::kFloat32) {
  const auto layout = std::make_shared<const RaggedLayout>(config, offsets);
  const AttentionOperands operands{rotated(in.query.detach(), *layout, precision), rotated(in.key.detach(), *layout, precision),
                                   to_operand(in.value.detach(), precision).clone(), window};
  const Attended attended = ragged_attention(operands, *layout, layout->block(), layout->block());
  const at::Tensor out = attended.output.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  if (!records_gradient({in.query, in.key, in.value})) return out;
  attach_backward({out}, {}, {in.query, in.key, in.value}, [=](std::vector<at::Tensor>&& gradients) {
    ragged_attention_backward(operands, attended, to_operand(gradients[0], precision).contiguous(), *layout, layout->block(),
                              layout->block(), operands);
    gradient_of(in.query).add_(operands.query);
    gradient_of(in.key).add_(operands.key);
    gradient_of(in.value).add_(operands.value);
    return at::Tensor();
  });
  return out;
}

struct Case {
  const char* name;
  int64_t heads, kv_heads, head_dim;
  Offsets offsets;
  int64_t window = 0;
  double softcap = 0, scale = 0;
  int64_t rotary_dims = 0;
  bool learned_positions = false, neighbours = false;
};

class RaggedAttentionCases : public ::testing::TestWithParam<Case> {
 protected:
  ModelConfig config() const {
    ModelConfig config{.heads = GetParam().heads, .kv_heads = GetParam().kv_heads, .head_dim = GetParam().head_dim};
    config.attention_softcap = GetParam().softcap;
    config.attention_scale = GetParam().scale;
    config.rope.dims = GetParam().rotary_dims;
    config.learned_positions = GetParam().learned_positions;
    config.rotary_neighbours = GetParam().neighbours;
    return config;
  }
};

TEST_P(RaggedAttentionCases, ValueAndGradientsMatchTheDefinition) {
  const Offsets& offsets = GetParam().offsets;
  const int64_t window = GetParam().window;
  const Inputs inputs(config(), offsets.back()), exact = inputs.in_double();
  const at::Tensor output = attend(inputs, config(), offsets, window), expected = reference(exact, config(), offsets, window);
  EXPECT_LT(largest_difference(output, expected), 1e-5);

  const at::Tensor weights = at::randn(output.sizes());
  output.backward(weights);
  expected.backward(weights.to(at::kDouble));
  EXPECT_LT(largest_difference(inputs.query.grad(), exact.query.grad()), 5e-5);
  EXPECT_LT(largest_difference(inputs.key.grad(), exact.key.grad()), 5e-5);
  EXPECT_LT(largest_difference(inputs.value.grad(), exact.value.grad()), 5e-5);
}

// Operands, shares and gradients are rounded to eight bits.
TEST_P(RaggedAttentionCases, ValueAndGradientsInBfloat16AreNearTheDefinition) {
  const Offsets& offsets = GetParam().offsets;
  const int64_t window = GetParam().window;
  const Inputs inputs(config(), offsets.back()), exact = inputs.in_double();
  const at::Tensor output = attend(inputs, config(), offsets, window, Precision::kBfloat16);
  const at::Tensor expected = reference(exact, config(), offsets, window), weights = at::randn(output.sizes());
  output.backward(weights);
  expected.backward(weights.to(at::kDouble));
  const auto share = [](const at::Tensor& x, const at::Tensor& of) { return ((x - of).norm() / of.norm()).item<double>(); };
  EXPECT_LT(share(output, expected), 1e-2);
  EXPECT_LT(share(inputs.value.grad(), exact.value.grad()), 1e-2);
  if (offsets.back() == 1 || window == 1) return;  // who sees itself alone gives queries and keys no gradient
  EXPECT_LT(share(inputs.query.grad(), exact.query.grad()), 2e-2);
  EXPECT_LT(share(inputs.key.grad(), exact.key.grad()), 2e-2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RaggedAttentionCases,
                         ::testing::Values(Case{"OneToken", 2, 2, 8, {0, 1}}, Case{"ShortSamples", 4, 4, 32, {0, 16, 19, 20, 35}},
                                           Case{"GroupedHeads", 6, 2, 32, {0, 9, 26}}, Case{"OddHeadSize", 2, 1, 10, {0, 7, 24}},
                                           Case{"EmptySample", 2, 2, 16, {0, 5, 5, 8}}, Case{"LongSample", 2, 1, 64, {0, 300}}),
                         [](const auto& info) { return info.param.name; });

// Windows of one token, within a register, across several, and longer than a sample.
INSTANTIATE_TEST_SUITE_P(
    Windows, RaggedAttentionCases,
    ::testing::Values(Case{.name = "Itself", .heads = 2, .kv_heads = 1, .head_dim = 8, .offsets = {0, 40, 43}, .window = 1},
                      Case{.name = "Short", .heads = 2, .kv_heads = 2, .head_dim = 8, .offsets = {0, 5, 70}, .window = 6},
                      Case{.name = "Long", .heads = 4, .kv_heads = 2, .head_dim = 20, .offsets = {0, 20, 150}, .window = 37},
                      Case{.name = "NeverCloses", .heads = 1, .kv_heads = 1, .head_dim = 8, .offsets = {0, 30}, .window = 30}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Switches, RaggedAttentionCases,
    ::testing::Values(
        Case{.name = "Softcap", .heads = 4, .kv_heads = 2, .head_dim = 16, .offsets = {0, 30, 51}, .softcap = 1.5},
        Case{.name = "SoftcapInAWindow",
             .heads = 2,
             .kv_heads = 1,
             .head_dim = 12,
             .offsets = {0, 50},
             .window = 9,
             .softcap = 0.7,
             .scale = 0.9},
        Case{.name = "Scale", .heads = 2, .kv_heads = 2, .head_dim = 16, .offsets = {0, 21}, .scale = 0.5},
        Case{.name = "PartlyRotary", .heads = 2, .kv_heads = 1, .head_dim = 80, .offsets = {0, 21}, .rotary_dims = 40},
        Case{.name = "TwoDimensionsOfAnOddHead", .heads = 2, .kv_heads = 1, .head_dim = 7, .offsets = {0, 21}, .rotary_dims = 2},
        Case{.name = "Neighbours",
             .heads = 4,
             .kv_heads = 2,
             .head_dim = 40,
             .offsets = {0, 21, 30},
             .rotary_dims = 38,
             .neighbours = true},
        Case{.name = "LearnedPositions",
             .heads = 2,
             .kv_heads = 2,
             .head_dim = 9,
             .offsets = {0, 4, 25},
             .learned_positions = true}),
    [](const auto& info) { return info.param.name; });

// A window hides what has left it altogether, whatever is there.
TEST(RaggedAttention, TokensBehindTheWindowDoNotMatter) {
  const ModelConfig config{.heads = 2, .kv_heads = 2, .head_dim = 16};
  Inputs inputs(config, 40);
  const at::Tensor before = attend(inputs, config, {0, 40}, 8).detach();
  for (at::Tensor* x : {&inputs.key, &inputs.value}) {
    *x = x->detach().clone();
    x->narrow(0, 0, 20).fill_(1e4);
  }
  const at::Tensor after = attend(inputs, config, {0, 40}, 8).detach();
  EXPECT_TRUE(before.narrow(0, 32, 8).equal(after.narrow(0, 32, 8)));
}

// Where angles depend on the length, a sample among others gives what it gives alone.
TEST(RaggedAttention, SamplesOfAnyLengthHaveTheirOwnAngles) {
  for (const RopeScaling scaling : {RopeScaling::kDynamic, RopeScaling::kLongrope}) {
    ModelConfig config{.heads = 2, .kv_heads = 2, .head_dim = 8};
    config.rope = {.scaling = scaling, .factor = 4.0, .original_positions = 10};
    config.rope.short_factors = {1, 1.1, 1.2, 1.3}, config.rope.long_factors = {1, 2, 3, 4};
    const Offsets offsets{0, 7, 27, 37, 50};
    const Inputs inputs(config, offsets.back());
    const at::Tensor together = attend(inputs, config, offsets);
    for (size_t s = 0; s + 1 < offsets.size(); ++s) {
      const int64_t first = offsets[s], count = offsets[s + 1] - first;
      Inputs alone = inputs;
      for (at::Tensor* x : {&alone.query, &alone.key, &alone.value}) *x = x->narrow(0, first, count);
      EXPECT_TRUE(attend(alone, config, {0, count}).equal(together.narrow(0, first, count))) << "sample " << s;
    }
    const RaggedLayout layout(config, offsets);
    EXPECT_EQ(&layout.rotary(0), &layout.rotary(2));
    EXPECT_EQ(&layout.rotary(1) == &layout.rotary(3), scaling == RopeScaling::kLongrope);
  }
}

// A small step along a random direction changes a random projection of the output by the gradient along that direction.
TEST(RaggedAttention, GradientsMatchFiniteDifferences) {
  const ModelConfig config{.heads = 4, .kv_heads = 2, .head_dim = 8};
  const Offsets offsets{0, 11, 18};
  Inputs inputs(config, offsets.back());
  const at::Tensor projection = at::randn({offsets.back(), 32});
  attend(inputs, config, offsets).backward(projection);
  for (at::Tensor Inputs::*which : {&Inputs::query, &Inputs::key, &Inputs::value}) {
    const at::Tensor x = (inputs.*which).detach(), gradient = (inputs.*which).grad(), direction = at::randn(x.sizes());
    const auto projected = [&](double step) {
      Inputs moved = inputs;
      moved.*which = x + direction * step;
      return (attend(moved, config, offsets).detach().to(at::kDouble) * projection).sum().item<double>();
    };
    constexpr double kStep = 5e-3;
    const double slope = (projected(kStep) - projected(-kStep)) / (2 * kStep);
    const double expected = (gradient.to(at::kDouble) * direction).sum().item<double>();
    EXPECT_NEAR(slope, expected, 2e-3 * (1 + std::abs(expected)));
  }
}

TEST(RaggedAttention, SamplesDoNotSeeEachOther) {
  const ModelConfig config{.heads = 2, .kv_heads = 2, .head_dim = 16};
  Inputs inputs(config, 12);
  const at::Tensor before = attend(inputs, config, {0, 5, 12}).detach();
  inputs.value = inputs.value.detach().clone();
  inputs.value.narrow(0, 0, 5).fill_(100.0);
  const at::Tensor after = attend(inputs, config, {0, 5, 12}).detach();
  EXPECT_TRUE(before.narrow(0, 5, 7).equal(after.narrow(0, 5, 7)));
  EXPECT_FALSE(before.narrow(0, 0, 5).equal(after.narrow(0, 0, 5)));
}

TEST(RaggedAttention, LargeScoresDoNotOverflow) {
  const ModelConfig config{.heads = 1, .kv_heads = 1, .head_dim = 16};
  Inputs inputs(config, 20);
  inputs.query = inputs.query.detach().mul(300.0);
  EXPECT_LT(largest_difference(attend(inputs, config, {0, 20}), reference(inputs.in_double(), config, {0, 20})), 2e-2);
}

TEST(RaggedAttention, AnyNumberOfThreadsGivesTheSameBits) {
  const ModelConfig config{.heads = 4, .kv_heads = 2, .head_dim = 32};
  Offsets offsets{0};
  for (int64_t sample = 0; sample < 40; ++sample) offsets.push_back(offsets.back() + 1 + sample % 13);
  const Inputs inputs(config, offsets.back());
  const at::Tensor weights = at::randn({offsets.back(), 128});
  const auto run = [&](int threads) {
    set_loop_threads(threads);
    for (const at::Tensor* x : {&inputs.query, &inputs.key, &inputs.value}) x->mutable_grad().reset();
    const at::Tensor output = attend(inputs, config, offsets);
    output.backward(weights);
    return std::vector<at::Tensor>{output.detach(), inputs.query.grad(), inputs.key.grad(), inputs.value.grad()};
  };
  const int64_t before = loop_threads();
  const auto one = run(1), three = run(3);
  set_loop_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(three[i])) << i;
}

// Of the only key/value head of a sample, its queries and keys in these ranges.
AttentionTask task_of(const ModelConfig& config, Precision precision, int64_t window, const AttentionOperands& of,
                      TokenRange queries, TokenRange keys) {
  const auto row = [](const at::Tensor& x, int64_t token) {
    return static_cast<const char*>(x.const_data_ptr()) + token * x.size(1) * x.element_size();
  };
  return {.precision = precision,
          .heads = config.heads,
          .kv_heads = 1,
          .head_dim = config.head_dim,
          .queries = queries.size(),
          .keys = keys.size(),
          .before = queries.begin - keys.begin,
          .kv_head = 0,
          .scale = static_cast<float>(config.score_scale()),
          .softcap = static_cast<float>(config.attention_softcap),
          .window = window,
          .query = row(of.query, queries.begin),
          .key = row(of.key, keys.begin),
          .value = row(of.value, keys.begin)};
}

// The kernels alone, on every kind of machine; the gradients take the place of what they are of.
class AttentionMachines : public ::testing::TestWithParam<std::tuple<Precision, bool>> {};

TEST_P(AttentionMachines, KernelOfEachMachineMatchesTheDefinition) {
  const auto [precision, capped] = GetParam();
  ModelConfig config{.heads = 2, .kv_heads = 1, .head_dim = 20};
  config.attention_softcap = capped ? 1.2 : 0.0;
  config.rope.dims = capped ? 6 : 0;
  const int64_t length = 41, window = capped ? 7 : 0;
  const Inputs inputs(config, length), exact = inputs.in_double();
  const at::Tensor expected = reference(exact, config, {0, length}, window), weights = at::randn(expected.sizes());
  expected.backward(weights.to(at::kDouble));
  const bool rounds = precision == Precision::kBfloat16;
  const auto near = [&](const at::Tensor& x, const at::Tensor& of) {
    return largest_difference(x, of) < (rounds ? 2e-2 * of.abs().max().item<double>() : 5e-5);
  };

  const RaggedLayout layout(config, std::vector<int64_t>{0, length});
  for (const InstructionSet set : runnable_instruction_sets()) {
    std::vector<int32_t> scratch(static_cast<size_t>(attention_scratch_words(precision, length, config.head_dim)));
    const at::Tensor query = rotated(inputs.query.detach(), layout, precision),
                     key = rotated(inputs.key.detach(), layout, precision);
    const at::Tensor value = to_operand(inputs.value.detach(), precision).clone(), grad = to_operand(weights, precision);
    const at::Tensor output = empty_operand(precision, expected.sizes()), sums = at::randn({length, config.heads});
    const AttentionTask task = task_of(config, precision, window, {query, key, value}, {0, length}, {0, length});
    attention_forward(task, {output.mutable_data_ptr(), sums.mutable_data_ptr<float>()}, scratch.data(), set);
    attention_backward(task,
                       {output.const_data_ptr(), sums.const_data_ptr<float>(), grad.const_data_ptr(), &layout.rotary(0), 0,
                        query.mutable_data_ptr(), key.mutable_data_ptr(), value.mutable_data_ptr()},
                       scratch.data(), set);
    EXPECT_TRUE(near(output, expected));
    EXPECT_TRUE(near(query, exact.query.grad()));
    EXPECT_TRUE(near(key, exact.key.grad()));
    EXPECT_TRUE(near(value, exact.value.grad()));
  }
}

// Queries over keys that lie apart: put together by log-sum-exp they are attention over all of them, and gradients add up.
TEST_P(AttentionMachines, PartsOfTheKeysMakeTheWhole) {
  const auto [precision, capped] = GetParam();
  ModelConfig config{.heads = 2, .kv_heads = 1, .head_dim = 20};
  config.attention_softcap = capped ? 1.2 : 0.0;
  const int64_t length = 75, middle = 35, window = capped ? 24 : 0;
  const Inputs inputs(config, length), exact = inputs.in_double();
  const TokenRange queries{middle, capped ? middle + window - 1 : length};  // each of them sees a key before the middle
  const std::vector<TokenRange> parts{{capped ? queries.begin + 1 - window : 0, middle}, {middle, queries.end}};
  const at::Tensor expected = reference(exact, config, {0, length}, window), weights = at::zeros_like(expected);
  const auto rows = [&](const at::Tensor& x) { return x.narrow(0, queries.begin, queries.size()); };
  rows(weights).normal_();
  expected.backward(weights);
  const double most = precision == Precision::kBfloat16 ? 2e-2 : 1e-4;
  const auto near = [&](const at::Tensor& x, const at::Tensor& of) {
    return largest_difference(x, of) < most * of.abs().max().item<double>();
  };

  const RaggedLayout layout(config, std::vector<int64_t>{0, length});
  const AttentionOperands of{rotated(inputs.query.detach(), layout, precision), rotated(inputs.key.detach(), layout, precision),
                             to_operand(inputs.value.detach(), precision).clone()};
  const at::Tensor grad = to_operand(rows(weights), precision).contiguous();
  for (const InstructionSet set : runnable_instruction_sets()) {
    std::vector<int32_t> scratch(static_cast<size_t>(attention_scratch_words(precision, length, config.head_dim)));
    std::vector<at::Tensor> outputs, sums;
    for (const TokenRange keys : parts) {
      outputs.push_back(empty_operand(precision, grad.sizes())), sums.push_back(at::empty({queries.size(), config.heads}));
      attention_forward(task_of(config, precision, window, of, queries, keys),
                        {outputs.back().mutable_data_ptr(), sums.back().mutable_data_ptr<float>()}, scratch.data(), set);
    }
    const at::Tensor sum = at::logaddexp(sums[0], sums[1]);
    at::Tensor output = at::zeros({queries.size(), config.heads, config.head_dim});
    for (size_t i = 0; i < parts.size(); ++i)
      output += outputs[i].to(at::kFloat).view(output.sizes()) * (sums[i] - sum).exp().unsqueeze(2);
    output = output.flatten(1);
    EXPECT_TRUE(near(output, rows(expected)));

    const at::Tensor whole = to_operand(output, precision).contiguous();
    const std::vector<at::Tensor> exact_gradients{exact.query.grad(), exact.key.grad(), exact.value.grad()};
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& of_whole : exact_gradients) gradients.push_back(at::zeros_like(of_whole));
    for (const TokenRange keys : parts) {
      const at::Tensor query = empty_operand(precision, grad.sizes());
      const at::Tensor key = empty_operand(precision, {keys.size(), config.head_dim}), value = at::empty_like(key);
      attention_backward(task_of(config, precision, window, of, queries, keys),
                         {whole.const_data_ptr(), sum.const_data_ptr<float>(), grad.const_data_ptr(), &layout.rotary(0),
                          keys.begin, query.mutable_data_ptr(), key.mutable_data_ptr(), value.mutable_data_ptr()},
                         scratch.data(), set);
      rows(gradients[0]).add_(query);
      gradients[1].narrow(0, keys.begin, keys.size()).add_(key);
      gradients[2].narrow(0, keys.begin, keys.size()).add_(value);
    }
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(near(gradients[i], exact_gradients[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionMachines,
                         ::testing::Combine(::testing::Values(Precision::kFloat32, Precision::kBfloat16), ::testing::Bool()),
                         [](const auto& info) {
                           const bool rounds = std::get<0>(info.param) == Precision::kBfloat16;
                           return std::string(rounds ? "Bfloat16" : "Float32") +
                                  (std::get<1>(info.param) ? "CappedInAWindow" : "");
                         });

}  // namespace
}  // namespace sluice::models::ragged_attention_test
