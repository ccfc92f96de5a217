#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "models/adapters/lora.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/operand.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

// A model whose matrices are quantised is the model whose matrices hold their values: the same bits forward, backward to its
// adapters, and in generation.
namespace sluice::models::quantised_model_test {
namespace {

const std::vector<int64_t> kOffsets{0, 21, 22, 30};
constexpr int64_t kTokens = 30;

struct Quantised {
  QuantisationOptions options;
  Precision precision;
};

class QuantisedModel : public ::testing::TestWithParam<Quantised> {
 protected:
  static Precision precision() { return GetParam().precision; }

  // Matrices of layers become change(matrix); all others are shared.
  template <class Change>
  static Weights changed(const Weights& weights, const Change& change) {
    Weights result = weights;
    for (LayerWeights& layer : result.layers) {
      std::set<size_t> routers;
      if (layer.network)
        for (const NetworkTensor& tensor : layer.network->tensors)
          if (!tensor.quantises) routers.insert(tensor.linear);
      std::vector<LinearWeights*> linears{&layer.query, &layer.key, &layer.value, &layer.attention_output};
      for (size_t i = 0; i < layer.feed_forward.size(); ++i)
        if (!routers.contains(i)) linears.push_back(&layer.feed_forward[i]);
      for (LinearWeights* linear : linears)
        if (linear->weight.defined()) linear->weight = change(linear->weight);
    }
    return result;
  }

  static Weights quantised_of(const ModelConfig& config) {
    return changed(reference::random_weights(config, 0.2),
                   [](const at::Tensor& matrix) { return quantised(matrix.detach(), GetParam().options); });
  }

  static Weights values_of(const Weights& weights) {
    return changed(weights, [](const at::Tensor& rows) { return to_operand(dequantised(rows), precision()); });
  }

  static void adapt(Weights& weights) {
    add_adapters(weights, {.rank = 3, .alpha = 6, .targets = {kAllLinear}}, 7);
    for (const AdaptableMatrix& matrix : adaptable_matrices(weights)) matrix.adapter->b.detach().normal_(0, 0.1);
  }

  // Log-probabilities of tokens, and the gradients of what is trained.
  static std::vector<at::Tensor> trained(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens,
                                         ActivationCheckpointing checkpointing) {
    const Transformer model(config, weights, {precision(), checkpointing});
    const at::Tensor states = model.hidden_states(tokens, kOffsets);
    const at::Tensor logprobs = action_logprobs(states, weights.head, tokens, {.precision = precision()});
    logprobs.sum().backward();
    std::vector<at::Tensor> all{logprobs.detach()};
    for (const auto& [name, factor] : weights.trainable()) {
      all.push_back(factor.grad().clone());
      factor.mutable_grad().reset();
    }
    return all;
  }
};

TEST_P(QuantisedModel, ComputesWhatItsValuesDo) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, config] : reference::configs_of_every_switch()) {
    const Weights narrow = quantised_of(config), wide = values_of(narrow);
    const at::Tensor tokens = at::randint(config.vocab_size, {kTokens}, at::kLong);
    const at::Tensor ours = Transformer(config, narrow, {precision()}).hidden_states(tokens, kOffsets),
                     theirs = Transformer(config, wide, {precision()}).hidden_states(tokens, kOffsets);
    EXPECT_TRUE(ours.equal(theirs)) << name;
    const PackedWeights packed(narrow, precision());
    const Transformer published(config, packed.for_passes(), {precision()});
    EXPECT_TRUE(published.hidden_states(tokens, kOffsets).equal(theirs)) << name << ", published";
  }
}

TEST_P(QuantisedModel, TrainsAdaptersAsItsValuesDo) {
  for (const auto& [name, config] : reference::configs_of_every_switch()) {
    if (config.experts.any()) continue;  // no adapters
    Weights narrow = quantised_of(config);
    adapt(narrow);
    const Weights wide = values_of(narrow);
    const at::Tensor tokens = at::randint(config.vocab_size, {kTokens}, at::kLong);
    for (const auto checkpointing : {ActivationCheckpointing::kNone, ActivationCheckpointing::kLayer}) {
      const auto ours = trained(config, narrow, tokens, checkpointing), theirs = trained(config, wide, tokens, checkpointing);
      ASSERT_EQ(ours.size(), theirs.size());
      ASSERT_GT(ours.size(), 1u);
      for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(ours[i].equal(theirs[i])) << name << " at " << i;
    }
  }
}

// What is sampled, with its log-probabilities.
std::vector<SampleResult> sampled(const ModelConfig& config, const PackedWeights& weights) {
  if (config.steady_positions() < 48) return {};
  GenerationEngine engine(config, {.sampling = {.temperature = 0.9}, .precision = weights.precision()},
                          {.max_running_samples = 5, .max_step_tokens = 24, .kv_block_size = 16, .kv_blocks = 40});
  std::vector<SampleResult> results(7);
  for (uint64_t id = 0; id < results.size(); ++id)
    engine.submit({.id = id,
                   .prompt = std::vector<int64_t>(3 + 4 * id, static_cast<int64_t>(id)),
                   .max_new_tokens = 12,
                   .stream = RandomStream(5, 1, 0, static_cast<uint32_t>(id))});
  while (!engine.idle())
    for (SampleResult& result : engine.step(weights)) results[result.id] = std::move(result);
  return results;
}

TEST_P(QuantisedModel, SamplesWhatItsValuesDo) {
  for (const auto& [name, config] : reference::configs_of_every_switch()) {
    const Weights narrow = quantised_of(config), wide = values_of(narrow);
    const auto ours = sampled(config, PackedWeights(narrow, precision())),
               theirs = sampled(config, PackedWeights(wide, precision()));
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].tokens, theirs[i].tokens) << name;
      EXPECT_EQ(ours[i].logprobs, theirs[i].logprobs) << name;
    }
  }
}

// Adapters of a quantised base stay apart: what it samples with is what it trains with, bit for bit.
TEST_P(QuantisedModel, WithAdaptersSamplesWithTheLogProbabilitiesThatItTrains) {
  for (const auto& [name, config] : reference::configs_of_every_switch()) {
    if (config.experts.any()) continue;
    Weights weights = quantised_of(config);
    PackedWeights packed(precision());
    for (int version = 0; version < 2; ++version) {
      adapt(weights);
      packed.pack(weights);
      const at::NoGradGuard no_gradient;
      const Transformer model(config, weights, {precision()});
      const auto results = sampled(config, packed);
      for (uint64_t id = 0; id < results.size(); ++id) {
        std::vector<int64_t> tokens(3 + 4 * id, static_cast<int64_t>(id));
        const auto before = static_cast<int64_t>(tokens.size());
        tokens.insert(tokens.end(), results[id].tokens.begin(), results[id].tokens.end());
        const at::Tensor all = at::tensor(tokens, at::kLong);
        const int64_t count = all.size(0) - before, offsets[] = {0, all.size(0) - 1};
        const at::Tensor states = model.hidden_states(all.narrow(0, 0, all.size(0) - 1), offsets);
        const at::Tensor logprobs =
            action_logprobs(states.narrow(0, before - 1, count), model.weights(), all.narrow(0, before, count),
                            {.temperature = 0.9, .softcap = config.logit_softcap, .precision = precision()});
        EXPECT_TRUE(logprobs.equal(at::tensor(results[id].logprobs))) << name << ", sample " << id;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, QuantisedModel,
                         ::testing::Values(Quantised{{Quantisation::kInt8, 32}, Precision::kFloat32},
                                           Quantised{{Quantisation::kInt8, 32}, Precision::kBfloat16},
                                           Quantised{{Quantisation::kInt4, 32}, Precision::kFloat32},
                                           Quantised{{Quantisation::kInt4, 64}, Precision::kBfloat16}));

}  // namespace
}  // namespace sluice::models::quantised_model_test
