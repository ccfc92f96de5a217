#include "models/layers/feed_forward/routes.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "base/numbers/random.h"
#include "models/forward/transformer.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/routing.h"
#include "models/portable/hidden_states.h"
#include "tests/models/dense_reference.h"
#include "tests/models/tensors.h"

namespace sluice::models::routes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

ModelConfig routed_config(int64_t experts = 6, int64_t per_token = 2) {
  ModelConfig config = reference::small_config();
  config.experts = {.count = experts, .per_token = per_token, .size = 20, .shared_size = 16, .normalised = true};
  return config;
}

std::vector<int32_t> some_experts(RandomStream& random, int64_t count, int64_t wanted) {
  std::vector<int32_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = 0; i < static_cast<size_t>(wanted); ++i)
    std::swap(all[i], all[i + static_cast<size_t>(random.below(static_cast<uint64_t>(count) - i))]);
  all.resize(static_cast<size_t>(wanted));
  std::ranges::sort(all);
  return all;
}

// Routes of tokens [T], every third layer of a token open.
at::Tensor random_routes(const ModelConfig& config, int64_t tokens, uint64_t seed) {
  RandomStream random(seed, 0);
  const RouteForm form = route_form(config);
  const at::Tensor routes = at::zeros({tokens, form.token_bytes()}, at::kByte);
  for (int64_t i = 0; i < tokens * form.layers; ++i) {
    uint8_t* const to = routes.mutable_data_ptr<uint8_t>() + i * form.layer_bytes();
    if (random.below(3) == 0)
      open_tokens({to, static_cast<size_t>(form.layer_bytes())});
    else
      write_route(form, some_experts(random, config.experts.count, form.per_token).data(), to);
  }
  return routes;
}

TEST(Routes, AreReadAsTheyWereWritten) {
  RandomStream random(1, 0);
  for (const int64_t count : {1, 2, 8, 254, 255, 256, 257, 512, 4096}) {
    for (const int64_t per_token : {int64_t{1}, std::min<int64_t>(count, 8)}) {
      const ModelConfig config = routed_config(count, per_token);
      const RouteForm form = route_form(config);
      EXPECT_EQ(form.token_bytes(), config.layers * per_token * (count > 255 ? 2 : 1));
      std::vector<uint8_t> bytes(static_cast<size_t>(form.layer_bytes()));
      std::vector<int32_t> chosen = some_experts(random, count, per_token), read(chosen.size(), -5);
      chosen.back() = static_cast<int32_t>(count) - 1;
      write_route(form, chosen.data(), bytes.data());
      ASSERT_TRUE(read_route(form, bytes.data(), read.data())) << count;
      EXPECT_EQ(read, chosen) << count;
      open_tokens(bytes);
      EXPECT_FALSE(read_route(form, bytes.data(), read.data()));
      EXPECT_EQ(read, chosen) << "an open layer says nothing";
    }
  }
}

TEST(Routes, ThoseOfAModelWithMoreExpertsDoNotFit) {
  for (const int64_t count : {6, 300}) {
    const ModelConfig config = routed_config(count);
    const at::Tensor routes = random_routes(config, 40, 4);
    const std::vector<int32_t> last{0, static_cast<int32_t>(count) - 1};
    write_route(route_form(config), last.data(), routes.mutable_data_ptr<uint8_t>());
    EXPECT_TRUE(are_routes_of(route_form(config), routes));
    EXPECT_FALSE(are_routes_of(route_form(routed_config(count, 3)), routes)) << "of another length";
    EXPECT_FALSE(are_routes_of(route_form(routed_config(count == 6 ? 5 : 299)), routes));
  }
}

TEST(Routes, OnlyTheLastLayerOfATokenIsOpened) {
  const ModelConfig config = routed_config();
  const RouteForm form = route_form(config);
  std::vector<uint8_t> token(static_cast<size_t>(form.token_bytes()), 1);
  open_last_layer(form, token.data());
  std::vector<int32_t> chosen(2);
  for (int64_t layer = 0; layer < form.layers; ++layer)
    EXPECT_EQ(read_route(form, token.data() + layer * form.layer_bytes(), chosen.data()), layer + 1 < form.layers);
}

TEST(Routes, TakeBytesOfMixturesAlone) {
  ModelConfig config = routed_config();
  config.layers = 5, config.experts.dense_layers = {0, 3};
  const RouteForm form = route_form(config);
  EXPECT_EQ(form.layers, 3);
  EXPECT_EQ(form.token_bytes(), 3 * 2);
  const at::Tensor routes = random_routes(config, 7, 6);
  const std::vector<int64_t> begins{-1, 0, 2, -1, 4};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const int64_t begin = begins[static_cast<size_t>(layer)];
    const LayerRoutes lies = layer_routes(config, routes, layer);
    EXPECT_EQ(lies.given(), begin >= 0) << layer;
    EXPECT_EQ(layer_routes_in_operators(config, routes, layer).defined(), begin >= 0) << layer;
    if (begin >= 0) EXPECT_EQ(lies.first, routes.const_data_ptr<uint8_t>() + begin) << layer;
  }
}

// Nothing is left out of a mixture that the last layer is behind.
TEST(Routes, OfTheLastLayerAreThereWhereItIsNoMixture) {
  ModelConfig config = routed_config();
  config.experts.dense_layers = {1};
  std::vector<uint8_t> token{1, 2};
  open_last_layer(route_form(config), token.data());
  EXPECT_THAT(token, ElementsAre(1, 2));
}

TEST(Routes, LibTorchsOperatorsReadAndWriteTheSameBytes) {
  for (const int64_t count : {6, 300}) {
    const ModelConfig config = routed_config(count);
    const RouteForm form = route_form(config);
    const at::Tensor routes = random_routes(config, 11, 2);
    std::vector<at::Tensor> layers;
    for (int64_t layer = 0; layer < form.layers; ++layer) {
      layers.push_back(layer_routes_in_operators(config, routes, layer));
      const LayerRoutes lies = layer_routes(config, routes, layer);
      for (int64_t token = 0; token < 11; ++token) {
        std::vector<int32_t> chosen(2, -1);
        lies.read(token, chosen.data());
        const at::Tensor of_token = layers.back()[token];
        EXPECT_THAT(chosen, ElementsAre(of_token[0].item<int32_t>(), of_token[1].item<int32_t>()));
      }
      layers.back() = layers.back().masked_fill(layers.back().lt(0), 0);
    }
    const at::Tensor written = routes_of_layers(form, layers);
    for (int64_t layer = 0; layer < form.layers; ++layer)
      EXPECT_TRUE(at::equal(layer_routes_in_operators(config, written, layer), layers[static_cast<size_t>(layer)]));
  }
}

TEST(Routes, GivenExpertsGetTheWeightsOfThisRouter) {
  const std::vector<float> logits{std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};
  for (const bool normalised : {false, true}) {
    const ExpertsConfig experts{.count = 4, .per_token = 2, .size = 1, .normalised = normalised};
    const RouteForm form{.layers = 1, .experts = 4, .per_token = 2};
    const std::vector<uint8_t> bytes{0, 2};
    std::vector<float> shares = logits, weights(2);
    std::vector<int32_t> chosen(2);
    route(experts, 1, {shares.data(), chosen.data(), weights.data()}, {bytes.data(), 2, form});
    EXPECT_THAT(chosen, ElementsAre(0, 2));
    const float sum = normalised ? .3f : 1;
    EXPECT_THAT(weights, Pointwise(FloatNear(1e-6), {.1f / sum, .2f / sum}));
  }
}

const std::vector<int64_t> kSamples{0, 9, 9, 14, 30};

// Which rows go where is given to both; one has kernels of ours, and the other differentiates by autograd.
class Replayed : public ::testing::TestWithParam<std::tuple<Precision, bool, std::vector<int64_t>>> {};

TEST_P(Replayed, TrainsAsLibTorchsOperatorsDo) {
  const auto& [precision, recomputes, dense_layers] = GetParam();
  ModelConfig config = routed_config();
  config.layers = 2 + std::ssize(dense_layers), config.experts.dense_layers = dense_layers;
  at::manual_seed(11);
  const auto here = std::make_shared<RouterTraining>(0.3), there = std::make_shared<RouterTraining>(0.3);
  const auto checkpointing = recomputes ? ActivationCheckpointing::kLayer : ActivationCheckpointing::kNone;
  Transformer kernels(config, reference::leaves(reference::random_weights(config)), {precision, checkpointing});
  kernels.set_routers(here);
  const Weights others = reference::leaves(kernels.weights());
  const at::Tensor tokens = at::randint(config.vocab_size, {kSamples.back()}, at::kLong);
  const at::Tensor routes = random_routes(config, kSamples.back(), 3), loss = at::randn({kSamples.back(), config.hidden_size});
  const at::Tensor ours = kernels.hidden_states(tokens, kSamples, routes);
  const at::Tensor theirs =
      portable::hidden_states(config, others, tokens, kSamples,
                              {.precision = precision, .checkpointing = recomputes, .routers = there, .routes = routes});
  const double rounding = precision == Precision::kFloat32 ? 1e-4 : 4e-2;  // of two layers
  const double tolerance = rounding * static_cast<double>(config.layers) / 2;
  EXPECT_LT(relative_distance(ours, theirs), tolerance);
  {
    const at::NoGradGuard no_gradient;
    EXPECT_GT(relative_distance(kernels.hidden_states(tokens, kSamples), ours), 10 * rounding)
        << "the routers would choose the same";
  }
  (ours * loss).sum().backward();
  (theirs * loss).sum().backward();
  for (size_t l = 0; l < others.layers.size(); ++l) {
    for (size_t i = 0; i < others.layers[l].feed_forward.size(); ++i) {
      const at::Tensor expected = others.layers[l].feed_forward[i].weight.grad();
      if (precision == Precision::kFloat32 || expected.norm().item<double>() > 1e-2) {
        EXPECT_LT(relative_distance(kernels.weights().layers[l].feed_forward[i].weight.grad(), expected), tolerance)
            << l << " " << i;
      }
    }
  }
  const RouterRecord told = here->take(), expected = there->take();
  EXPECT_EQ(told.through, expected.through);
  int64_t rerouted = 0, expected_rerouted = 0;
  for (const auto& sample : told.samples) rerouted += sample.rerouted;
  for (const auto& sample : expected.samples) expected_rerouted += sample.rerouted;
  EXPECT_GT(rerouted, 10);
  EXPECT_NEAR(static_cast<double>(rerouted), static_cast<double>(expected_rerouted), precision == Precision::kFloat32 ? 0 : 2);
}

INSTANTIATE_TEST_SUITE_P(Passes, Replayed,
                         ::testing::Combine(::testing::Values(Precision::kFloat32, Precision::kBfloat16), ::testing::Bool(),
                                            ::testing::Values(std::vector<int64_t>{}, std::vector<int64_t>{1})));

}  // namespace
}  // namespace sluice::models::routes_test
