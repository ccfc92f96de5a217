#include "models/layers/feed_forward/router_training.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "models/forward/transformer.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/layer_pass.h"
#include "models/layers/operand.h"
#include "models/portable/hidden_states.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

namespace sluice::models::router_training_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<int64_t> kOffsets{0, 21, 22, 22, 30, 54};
const std::vector<double> kCounted{3, 1, 0, 2.5, 1};

ModelConfig mixture(bool normalised = false) {
  ModelConfig config = reference::small_config();
  config.experts = {.count = 6, .per_token = 2, .size = 20, .shared_size = 16, .normalised = normalised};
  return config;
}

Weights leaves(const ModelConfig& config) { return reference::leaves(reference::random_weights(config, 0.2)); }

Transformer told(const ModelConfig& config, Compute compute = {}) {
  Transformer model(config, leaves(config), compute);
  model.set_routers(std::make_shared<RouterTraining>());
  return model;
}

at::Tensor tokens_of(const ModelConfig& config) { return at::randint(config.vocab_size, {kOffsets.back()}, at::kLong); }

RouterRecord record_of(const Transformer& model, const at::Tensor& tokens, std::span<const int64_t> offsets = kOffsets) {
  model.hidden_states(tokens, offsets).square().sum().backward();
  return model.routers()->take();
}

TEST(RouterTraining, EveryTokenGoesThroughItsExpertsOnceALayer) {
  const ModelConfig config = mixture();
  for (const auto checkpointing : {ActivationCheckpointing::kNone, ActivationCheckpointing::kLayer}) {
    const Transformer model = told(config, {.checkpointing = checkpointing});
    const RouterRecord record = record_of(model, tokens_of(config));
    ASSERT_EQ(record.through.size(), 2u * 6u);
    for (size_t layer = 0; layer < 2; ++layer)
      EXPECT_EQ(std::accumulate(&record.through[layer * 6], &record.through[layer * 6] + 6, int64_t{0}), 2 * 54);
    EXPECT_EQ(record.samples.size(), 2u * 4u) << "an empty sample says nothing";
    EXPECT_TRUE(model.routers()->take().samples.empty());
  }
}

TEST(RouterTraining, LayersThatAreNoMixturesTellNothing) {
  ModelConfig config = mixture();
  config.layers = 4, config.experts.dense_layers = {0, 2};
  const RouterRecord record = record_of(told(config), tokens_of(config));
  ASSERT_EQ(record.through.size(), 4u * 6u);
  for (size_t layer = 0; layer < 4; ++layer) {
    const int64_t all = layer % 2 == 0 ? 0 : 2 * 54;
    EXPECT_EQ(std::accumulate(&record.through[layer * 6], &record.through[layer * 6] + 6, int64_t{0}), all) << layer;
  }
  EXPECT_EQ(record.samples.size(), 2u * 4u) << "of two layers";
}

TEST(RouterTraining, WhatIsComputedWithoutAGradientDoesNotCount) {
  const ModelConfig config = mixture();
  const Transformer model = told(config);
  const at::NoGradGuard no_gradient;
  model.hidden_states(tokens_of(config), kOffsets);
  EXPECT_TRUE(model.routers()->take().samples.empty());
}

// The same bits, so that sums of them are the same.
TEST(RouterTraining, ASampleTellsTheSameBesideOthersAndAlone) {
  const ModelConfig config = mixture();
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Transformer model = told(config, {.precision = precision});
    const at::Tensor tokens = tokens_of(config);
    const RouterRecord together = record_of(model, tokens),
                       alone = record_of(model, tokens.narrow(0, 22, 8), std::vector<int64_t>{0, 8});
    for (size_t layer = 0; layer < 2; ++layer) {
      const RouterRecord::Sample &one = together.samples[layer * 4 + 2], &other = alone.samples[layer];
      EXPECT_EQ(one.tokens, 8);
      EXPECT_EQ(one.entropy, other.entropy);
      EXPECT_EQ(one.loss, other.loss);
    }
  }
}

TEST(RouterTraining, APassOfOtherSamplesThanExpectedIsABug) {
  const ModelConfig config = mixture();
  const Transformer model = told(config);
  model.routers()->expect({1, 1});
  EXPECT_THROW(record_of(model, tokens_of(config)), InternalError);
}

// One layer's network alone: what its loss adds to the gradients is that of autograd through LibTorch's operators. Also where
// operands are rounded, to what they round.
class LossOfRouters : public ::testing::TestWithParam<std::tuple<bool, Precision>> {};

TEST_P(LossOfRouters, AddsTheGradientsOfAutograd) {
  const auto [normalised, precision] = GetParam();
  const double aux_loss = precision == Precision::kFloat32 ? 0.3 : 300;  // of a sum that is rounded it is nearly all
  const ModelConfig config = mixture(normalised);
  const LayerWeights layer = leaves(config).layers[0];
  const at::Tensor in = at::randn({kOffsets.back(), config.hidden_size}), grad = at::randn_like(in);
  const auto gradients = [&](double aux) {
    const LayerPass pass(config, kOffsets, {.tokens = kOffsets.back()}, precision, false);
    const std::vector<at::Tensor> kept = allocated(kExperts.kept(pass.shape()));
    const at::Tensor operand = to_operand(in, precision), out = at::zeros_like(in), of_in = at::zeros_like(in);
    RouterTraining training(aux);
    training.expect(kCounted);
    const RouterOfLayer router{training, 0, kOffsets};
    layer.feed_forward[Experts::kRouter].weight.mutable_grad() = at::Tensor();
    kExperts.forward(pass, layer.feed_forward, operand, kept, {}, out, false);
    kExperts.backward(pass, layer.feed_forward, operand, kept, to_operand(grad, precision), {of_in, false}, &router);
    return std::pair{layer.feed_forward[Experts::kRouter].weight.grad().clone(), of_in};
  };
  const auto [with_router, with_in] = gradients(aux_loss);
  const auto [without_router, without_in] = gradients(0);

  const auto rounded = [precision = precision](const at::Tensor& x) { return reference::operand(precision, x.detach()); };
  const at::Tensor matrix = rounded(layer.feed_forward[Experts::kRouter].weight).set_requires_grad(true);
  const at::Tensor read = rounded(in).set_requires_grad(true);
  at::Tensor loss = at::zeros({});
  for (size_t s = 0; s + 1 < kOffsets.size(); ++s) {
    const int64_t length = kOffsets[s + 1] - kOffsets[s];
    if (length == 0) continue;
    const at::Tensor shares = at::softmax(at::matmul(read.narrow(0, kOffsets[s], length), matrix.t()), -1);
    const at::Tensor chosen = at::one_hot(std::get<1>(at::topk(shares, 2, -1)), 6).sum(1).to(at::kFloat);  // [T,E]
    loss = loss + aux_loss * kCounted[s] * 6.0 / 2.0 * chosen.mean(0).mul(shares.mean(0)).sum();
  }
  loss.backward();
  const double tolerance = precision == Precision::kFloat32 ? 1e-4 : 2e-2;
  const auto relative = [](const at::Tensor& ours, const at::Tensor& theirs) {
    return (ours - theirs).norm().item<double>() / theirs.norm().item<double>();
  };
  EXPECT_LT(relative(with_router - without_router, matrix.grad()), tolerance);
  EXPECT_LT(relative(with_in - without_in, read.grad()), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Precisions, LossOfRouters,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(Precision::kFloat32, Precision::kBfloat16)));

// The same maths in LibTorch's operators, as a GPU has them: what is told, and all gradients.
class RoutersOnDevices : public ::testing::TestWithParam<const char*> {};

TEST_P(RoutersOnDevices, TellAndLearnTheSame) {
  const auto device = devices::find(GetParam());
  if (!device) GTEST_SKIP() << "this machine has no " << GetParam();
  for (const bool checkpointing : {false, true}) {
    const ModelConfig config = mixture();
    const auto here = std::make_shared<RouterTraining>(0.5), there = std::make_shared<RouterTraining>(0.5);
    Transformer kernels(config, leaves(config));
    kernels.set_routers(here);
    const Weights moved = reference::leaves(kernels.weights(), *device);
    const at::Tensor tokens = tokens_of(config), loss = at::randn({kOffsets.back(), config.hidden_size});
    for (const auto& training : {here, there}) training->expect(kCounted);
    (kernels.hidden_states(tokens, kOffsets) * loss).sum().backward();
    const at::Tensor states =
        portable::hidden_states(config, moved, tokens.to(*device), kOffsets, {.checkpointing = checkpointing, .routers = there});
    (states * loss.to(*device)).sum().backward();
    const RouterRecord ours = there->take(), theirs = here->take();
    EXPECT_EQ(ours.through, theirs.through);
    ASSERT_EQ(ours.samples.size(), theirs.samples.size());
    const auto sums = [](const RouterRecord& record) {
      double entropy = 0, balance = 0;
      for (const auto& sample : record.samples) entropy += sample.entropy, balance += sample.counted * sample.loss;
      return std::pair{entropy, balance};
    };
    EXPECT_NEAR(sums(ours).first, sums(theirs).first, 1e-4);
    EXPECT_NEAR(sums(ours).second, sums(theirs).second, 1e-4);
    for (size_t l = 0; l < moved.layers.size(); ++l) {
      const at::Tensor expected = kernels.weights().layers[l].feed_forward[Experts::kRouter].weight.grad();
      const at::Tensor gradient = moved.layers[l].feed_forward[Experts::kRouter].weight.grad().to(at::kCPU);
      EXPECT_LT((gradient - expected).norm().item<double>(), 1e-4 * expected.norm().item<double>());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, RoutersOnDevices, ::testing::ValuesIn(devices::kNames), devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, RoutersOnDevices, ::testing::ValuesIn(devices::kFake), devices::PlainName());

}  // namespace
}  // namespace sluice::models::router_training_test
