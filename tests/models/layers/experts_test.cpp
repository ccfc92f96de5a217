#include "models/layers/feed_forward/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "models/adapters/lora.h"
#include "models/folder/folder.h"
#include "models/layers/feed_forward/routing.h"
#include "models/layers/operand.h"
#include "models/sample/packed_weights.h"
#include "tests/models/activation_peak.h"
#include "tests/models/allocation_counter.h"
#include "tests/models/dense_reference.h"
#include "tests/models/golden_models.h"

namespace sluice::models::experts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// What a router makes of its logits, T tokens back to back.
struct Routed {
  std::vector<float> shares, weights;
  std::vector<int32_t> chosen;
  ExpertsConfig experts;
  int64_t tokens;

  Routed(const ExpertsConfig& of, std::vector<float> logits)
      : shares(std::move(logits)), experts(of), tokens(static_cast<int64_t>(shares.size()) / of.count) {
    weights.resize(static_cast<size_t>(tokens * of.per_token)), chosen.resize(weights.size());
    route(experts, tokens, rows());
  }

  RouterRows rows() { return {shares.data(), chosen.data(), weights.data()}; }
};

constexpr ExpertsConfig kShares{.count = 4, .per_token = 2, .size = 1};
constexpr ExpertsConfig kNormalised{.count = 4, .per_token = 2, .size = 1, .normalised = true};
const std::vector<float> kLogits{std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)};

TEST(Routing, WeightsAreSharesOfTheSoftmaxInTheOrderOfTheExperts) {
  const Routed routed(kShares, kLogits);
  EXPECT_THAT(routed.chosen, ElementsAre(1, 3));
  EXPECT_THAT(routed.weights, Pointwise(FloatNear(1e-6), {.4f, .3f}));
}

TEST(Routing, NormalisedWeightsSumToOne) {
  EXPECT_THAT(Routed(kNormalised, kLogits).weights, Pointwise(FloatNear(1e-6), {4 / 7.f, 3 / 7.f}));
}

TEST(Routing, OfEqualLogitsTheLowerExpertIsChosen) {
  EXPECT_THAT(Routed(kShares, {1, 2, 2, 2}).chosen, ElementsAre(1, 2));
  EXPECT_THAT(Routed(kShares, {0, 0, 0, 0}).chosen, ElementsAre(0, 1));
  EXPECT_THAT(Routed(kShares, {1, 1, 1, 2}).chosen, ElementsAre(0, 3));
}

TEST(Routing, WhatIsNoNumberChoosesDistinctExpertsAllTheSame) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector{nan, nan, nan, nan}, std::vector{1.f, nan, 3.f, nan}}) {
    const Routed routed(kShares, logits);
    EXPECT_EQ(std::set<int32_t>(routed.chosen.begin(), routed.chosen.end()).size(), 2u);
    for (const int32_t expert : routed.chosen) EXPECT_THAT(expert, ::testing::AllOf(::testing::Ge(0), ::testing::Lt(4)));
  }
}

// Of the weights' sum with some factors, by differences.
TEST(Routing, GradientsOfTheLogitsAreThoseOfDifferences) {
  const std::vector<float> logits{.3f, -.2f, .9f, .1f, 1.1f, .4f, -.6f, .2f}, of_weights{.7f, -1.3f, .2f, 2.f};
  for (const ExpertsConfig& experts : {kShares, kNormalised}) {
    Routed routed(experts, logits);
    std::vector<float> grad(logits.size());
    route_backward(experts, routed.tokens, routed.rows(), of_weights.data(), nullptr, grad.data());
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto sum = [&](float step) {
        std::vector<float> moved = logits;
        moved[i] += step;
        const Routed there(experts, moved);
        double total = 0;
        for (size_t k = 0; k < of_weights.size(); ++k) total += static_cast<double>(of_weights[k]) * there.weights[k];
        return total;
      };
      EXPECT_NEAR(grad[i], (sum(.01f) - sum(-.01f)) / .02, 1e-4) << i;
    }
  }
}

TEST(Routing, PlacesAreSortedByExpertAndThenByToken) {
  const ExpertsConfig experts{.count = 4, .per_token = 2, .size = 1};
  const std::vector<int32_t> chosen{0, 3, 0, 1, 1, 3};  // of three tokens; nobody goes to expert 2
  std::vector<int32_t> places(6), first(5);
  sort_by_expert(experts, 3, chosen.data(), places.data(), first.data());
  EXPECT_THAT(first, ElementsAre(0, 2, 4, 4, 6));
  EXPECT_THAT(places, ElementsAre(0, 2, 3, 4, 1, 5));
}

ModelConfig mixture() {
  ModelConfig config = reference::small_config();
  config.experts = {.count = 6, .per_token = 2, .size = 20, .shared_size = 16};
  return config;
}

// Of experts that are equally likely the first ones are chosen, by every token.
Weights all_to_the_first(const ModelConfig& config) {
  Weights weights = reference::random_weights(config, 0.2);
  for (LayerWeights& layer : weights.layers) layer.feed_forward[Experts::kRouter].weight.zero_();
  return weights;
}

TEST(Experts, WithoutATokenHaveAGradientOfZeroAndNotNone) {
  const ModelConfig config = mixture();
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    Transformer model(config, all_to_the_first(config), {precision});
    for (const auto& [name, weight] : model.weights().named()) weight.set_requires_grad(true);
    const at::Tensor ids = at::randint(config.vocab_size, {30}, at::kLong);
    model.hidden_states(ids, std::vector<int64_t>{0, 30}).square().sum().backward();
    const auto gradient = [&](size_t expert, Mlp::Linear linear) {
      const at::Tensor grad = model.weights().layers[0].feed_forward[Experts::linear_of(expert, linear)].weight.grad();
      return grad.defined() ? grad.abs().max().item<float>() : -1;
    };
    for (const auto linear : {Mlp::kGate, Mlp::kUp, Mlp::kDown}) {
      for (size_t expert = 0; expert < 2; ++expert) EXPECT_GT(gradient(expert, linear), 0);
      for (size_t expert = 2; expert < 6; ++expert) EXPECT_EQ(gradient(expert, linear), 0);
      EXPECT_GT(gradient(6, linear), 0);  // the shared one
    }
  }
}

// However many tokens go through one expert, a pass takes what was planned.
TEST(Experts, TakeTheSameMemoryHoweverTokensAreRouted) {
  ModelConfig config = mixture();
  config.hidden_size = 96, config.head_dim = 24, config.experts.size = 120, config.experts.shared_size = 64;
  config.max_positions = 3000;
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const bool training : {false, true}) {
      Transformer even(config, reference::random_weights(config, 0.2), {precision});
      Transformer uneven(config, all_to_the_first(config), {precision});
      const ActivationPeak of_even = activation_peak_of(even, 2500, training),
                           of_uneven = activation_peak_of(uneven, 2500, training);
      EXPECT_EQ(of_even.measured, of_uneven.measured);
      EXPECT_GE(of_uneven.predicted, of_uneven.measured);
      EXPECT_LE(static_cast<double>(of_uneven.predicted), 1.2 * static_cast<double>(of_uneven.measured));
    }
  }
}

// A step whose tokens all go through the same experts takes no more memory than one whose tokens are spread.
TEST(Experts, OfAStepAllocateNothingHoweverTokensAreRouted) {
  const ModelConfig config = mixture();
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const PackedWeights packed(reference::random_weights(config), precision);
    const at::Tensor spread = at::randn({16, config.hidden_size}).to(operand_type(precision));
    const at::Tensor alike = spread.narrow(0, 3, 1).expand({16, config.hidden_size}).contiguous(),
                     out = at::empty({16, config.hidden_size});
    StepScratch scratch;
    const auto step = [&](const at::Tensor& x) {
      kExperts.step(config, packed.layers()[0].matrices.feed_forward,
                    {.x = x.const_data_ptr(), .tokens = 16, .out = out.mutable_data_ptr<float>()}, scratch);
    };
    const auto places = [&] {  // a buffer that grows is another one
      std::vector<const void*> all;
      for (size_t place = 0; place < 8; ++place)
        all.insert(all.end(), {scratch.floats(place, 0), scratch.ints(place, 0), scratch.operand(place, precision, 0).data()});
      return all;
    };
    step(spread);
    const std::vector<const void*> before = places();
    EXPECT_EQ(allocations_in([&] { step(alike); }), 0);
    EXPECT_EQ(places(), before);
    for (int64_t row = 1; row < 16; ++row) EXPECT_TRUE(out[row].equal(out[0])) << row;
  }
}

TEST(Experts, AreCountedAmongTheParametersThatATokenGoesThrough) {
  const ModelConfig config = mixture();
  EXPECT_EQ(config.idle_parameters(), 2 * 4 * 3 * 20 * 24);  // layers, experts, matrices
  EXPECT_EQ(reference::small_config().idle_parameters(), 0);
  ModelConfig mixed = config;
  mixed.layers = 5, mixed.experts.dense_layers = {0, 3};
  EXPECT_EQ(mixed.idle_parameters(), 3 * 4 * 3 * 20 * 24);
}

TEST(Experts, HaveNoAdaptersButAttentionAndTheSharedOneHave) {
  Transformer model = load_transformer(golden_model("qwen2_moe"), {});
  std::set<std::string> modules;
  for (const AdaptableMatrix& matrix : adaptable_matrices(model.weights()))
    if (matrix.name.starts_with("model.layers.1.")) modules.insert(matrix.name.substr(15));
  EXPECT_THAT(modules, ElementsAre("mlp.shared_expert.down_proj", "mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj",
                                   "self_attn.k_proj", "self_attn.o_proj", "self_attn.q_proj", "self_attn.v_proj"));
}

// Of Qwen3-MoE, PEFT makes experts of the names of an MLP.
TEST(Experts, LeaveAdaptersToTheMlpsOfOtherLayersWherePeftFindsThem) {
  const auto of_mlps = [](const char* folder) {
    Transformer model = load_transformer(golden_model(folder), {});
    std::set<std::string> modules;
    for (const AdaptableMatrix& matrix : adaptable_matrices(model.weights()))
      if (matrix.name.starts_with("model.layers.0.mlp.")) modules.insert(matrix.name.substr(19));
    return modules;
  };
  EXPECT_THAT(of_mlps("qwen2_moe_mixed"), ElementsAre("down_proj", "gate_proj", "up_proj"));
  EXPECT_THAT(of_mlps("qwen3_moe_mixed"), ElementsAre());
}

}  // namespace
}  // namespace sluice::models::experts_test
