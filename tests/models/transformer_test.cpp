#include "models/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "models/training/action_logprobs.h"
#include "tests/models/dense_reference.h"

namespace sluice::models {
namespace {

struct Batch {
  at::Tensor tokens;
  std::vector<int64_t> offsets;
};

// Log-probabilities of every token but the first of each sample.
at::Tensor next_token_logprobs(const Transformer& model, const Batch& batch) {
  std::vector<int64_t> before, targets;
  const auto* tokens = batch.tokens.const_data_ptr<int64_t>();
  for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    for (int64_t t = batch.offsets[s]; t + 1 < batch.offsets[s + 1]; ++t) {
      before.push_back(t);
      targets.push_back(tokens[t + 1]);
    }
  }
  const at::Tensor hidden = model.hidden_states(batch.tokens, batch.offsets).index_select(0, at::tensor(before));
  return action_logprobs(hidden, model.weights().head, at::tensor(targets), 1.0, 5, model.config().logit_softcap);
}

// The same out of the logits of the dense model.
at::Tensor dense_logprobs(const Transformer& model, const Batch& batch) {
  std::vector<at::Tensor> all;
  const auto* tokens = batch.tokens.const_data_ptr<int64_t>();
  for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    const std::vector<int64_t> sample(tokens + batch.offsets[s], tokens + batch.offsets[s + 1]);
    const at::Tensor logits = reference::logits(model.config(), model.weights(), sample).slice(0, 0, -1);
    const at::Tensor targets = at::tensor(std::vector<int64_t>(sample.begin() + 1, sample.end())).unsqueeze(1);
    all.push_back(at::log_softmax(logits, 1).gather(1, targets).squeeze(1));
  }
  return at::cat(all);
}

// A loss weighs each log-probability differently.
at::Tensor loss_weights(const Batch& batch) {
  std::vector<float> weights;
  const int64_t count = batch.tokens.size(0) - static_cast<int64_t>(batch.offsets.size()) + 1;
  for (int64_t i = 0; i < count; ++i) weights.push_back(static_cast<float>(std::cos(i)));
  return at::tensor(weights);
}

// The gradients of all weights; leaves none behind.
std::vector<std::pair<std::string, at::Tensor>> gradients_of(const at::Tensor& logprobs, const Batch& batch, Transformer& model) {
  (logprobs * loss_weights(batch)).sum().backward();
  std::vector<std::pair<std::string, at::Tensor>> gradients;
  for (const auto& [name, weight] : reference::tensors_of(model.weights())) {
    gradients.emplace_back(name, weight->grad());
    weight->mutable_grad().reset();
  }
  return gradients;
}

// Every switch against a dense model out of ATen's operators.
class TransformerSwitches : public testing::TestWithParam<reference::NamedConfig> {
 protected:
  static Transformer random_model(const ModelConfig& config) {
    Transformer model(config, reference::random_weights(config, 0.2));
    for (const auto& [name, weight] : reference::tensors_of(model.weights())) weight->set_requires_grad(true);
    return model;
  }

  static Batch random_batch(const ModelConfig& config) {
    const std::vector<int64_t> offsets{0, 21, 22, 30, 54};
    return {at::randint(config.vocab_size, {offsets.back()}, at::kLong), offsets};
  }

  Transformer model_ = random_model(GetParam().config);
  Batch batch_ = random_batch(GetParam().config);
};

TEST_P(TransformerSwitches, LogProbabilitiesAndGradientsMatchTheDenseModel) {
  const at::Tensor ours = next_token_logprobs(model_, batch_), theirs = dense_logprobs(model_, batch_);
  EXPECT_LT((ours - theirs).abs().max().item<float>(), 1e-4);
  const auto gradients = gradients_of(ours, batch_, model_), expected = gradients_of(theirs, batch_, model_);
  double largest = 0;
  for (const auto& [name, gradient] : expected) largest = std::max(largest, gradient.norm().item<double>());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, gradient] = expected[i];
    ASSERT_TRUE(gradients[i].second.defined()) << name;
    const double tolerance = 1e-4 * gradient.norm().item<double>() + 1e-6 * largest;
    EXPECT_LT((gradients[i].second - gradient).norm().item<double>(), tolerance) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, TransformerSwitches, testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Transformer, NarrowWeightsDoNotTrain) {
  const ModelConfig config = reference::small_config();
  Weights weights = reference::random_weights(config);
  weights.embedding = weights.embedding.to(at::kBFloat16).set_requires_grad(true);
  const Transformer model(config, weights);
  EXPECT_THROW(model.hidden_states(at::tensor(std::vector<int64_t>{1, 2}), std::vector<int64_t>{0, 2}), InternalError);
}

TEST(Transformer, SampleLongerThanTheTableOfPositionsIsABug) {
  ModelConfig config = reference::small_config();
  config.learned_positions = true, config.max_positions = 4;
  const Transformer model(config, reference::random_weights(config));
  const at::Tensor tokens = at::tensor(std::vector<int64_t>{1, 2, 3, 4, 5});
  EXPECT_NO_THROW(model.hidden_states(tokens, std::vector<int64_t>{0, 4, 5}));
  EXPECT_THROW(model.hidden_states(tokens, std::vector<int64_t>{0, 5}), InternalError);
}

const std::string kGolden = std::string(SLUICE_SOURCE_DIR) + "/tests/golden/models/";

// Every folder with numbers that transformers wrote; see tests/oracles/transformer_reference.py.
std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    if (std::filesystem::exists(entry.path() / "expected.json")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class TransformerOracle : public testing::TestWithParam<std::string> {
 protected:
  Transformer load(const LoadOptions& options) const { return Transformer::load(kGolden + GetParam(), options); }

  at::Tensor numbers(const char* key) const { return at::tensor(expected_[key].get<std::vector<float>>()); }

  Json expected_ = read_json(kGolden + GetParam() + "/expected.json");
  Batch batch_{at::tensor(expected_["tokens"].get<std::vector<int64_t>>()),
               expected_["sample_offsets"].get<std::vector<int64_t>>()};
};

TEST_P(TransformerOracle, LogProbabilitiesMatchHuggingFace) {
  const at::Tensor logprobs = next_token_logprobs(load({.trainable = true}), batch_);
  EXPECT_LT((logprobs - numbers("logprobs")).abs().max().item<float>(), 1e-4);
}

// Far below the largest gradient lies what is zero but for rounding: of a bias on keys that do not turn.
TEST_P(TransformerOracle, GradientsMatchHuggingFace) {
  Transformer model = load({.trainable = true});
  (next_token_logprobs(model, batch_) * loss_weights(batch_)).sum().backward();
  const auto named = model.weights().named();
  ASSERT_EQ(named.size(), expected_["gradient_norms"].size());
  double largest = 0;
  for (const auto& [name, norm] : expected_["gradient_norms"].items()) largest = std::max(largest, norm.get<double>());
  for (const auto& [name, weight] : named) {
    ASSERT_TRUE(expected_["gradient_norms"].contains(name)) << name;
    const double norm = expected_["gradient_norms"][name], tolerance = 1e-4 * std::max(norm, 1e-3 * largest);
    EXPECT_NEAR(weight.grad().norm().item<double>(), norm, tolerance) << name;
    if (!expected_["gradients"].contains(name)) continue;
    const at::Tensor gradient = at::tensor(expected_["gradients"][name].get<std::vector<float>>());
    EXPECT_LT((weight.grad().flatten() - gradient).norm().item<double>(), tolerance) << name;
  }
}

TEST_P(TransformerOracle, LogProbabilitiesInBfloat16MatchHuggingFace) {
  const at::NoGradGuard no_gradient;
  const at::Tensor logprobs = next_token_logprobs(load({.dtype = at::kBFloat16}), batch_);
  EXPECT_LT((logprobs - numbers("logprobs_bfloat16")).abs().max().item<float>(), 2e-2);
}

TEST_P(TransformerOracle, SampleDoesNotDependOnItsNeighbours) {
  const at::NoGradGuard no_gradient;
  const Transformer model = load({});
  const at::Tensor together = model.hidden_states(batch_.tokens, batch_.offsets);
  std::vector<at::Tensor> alone;
  for (size_t s = 0; s + 1 < batch_.offsets.size(); ++s) {
    const int64_t length = batch_.offsets[s + 1] - batch_.offsets[s];
    alone.push_back(model.hidden_states(batch_.tokens.narrow(0, batch_.offsets[s], length), std::vector<int64_t>{0, length}));
  }
  EXPECT_LT((together - at::cat(alone)).abs().max().item<float>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerOracle, testing::ValuesIn(golden_models()),
                         [](const auto& info) { return info.param; });

TEST(TransformerOracles, CoverEveryFamily) { EXPECT_GE(golden_models().size(), 24u); }

TEST(Weights, CloneSharesNothingAndStaysTied) {
  const Transformer model =
      Transformer::load(std::string(SLUICE_SOURCE_DIR) + "/tests/golden/models/llama_tied", {.trainable = true});
  Weights copy = model.weights().clone();
  EXPECT_TRUE(copy.head.is_same(copy.embedding));
  EXPECT_FALSE(copy.embedding.requires_grad());
  copy.embedding.zero_();
  EXPECT_GT(model.weights().embedding.abs().sum().item<float>(), 0.0f);
  copy.copy_from(model.weights());
  EXPECT_TRUE(copy.embedding.equal(model.weights().embedding));
  EXPECT_EQ(copy.parameter_count(), 48 * 32 + 2 * (2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 32 * 40) + 32);
}

}  // namespace
}  // namespace sluice::models
