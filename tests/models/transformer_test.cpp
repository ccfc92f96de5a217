#include "models/transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "models/action_logprobs.h"

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
  return action_logprobs(hidden, model.weights().head, at::tensor(targets), 1.0, 5);
}

// Models and numbers that transformers wrote; see tests/oracles/transformer_reference.py.
class TransformerOracle : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = std::string(SLUICE_SOURCE_DIR) + "/tests/golden/models/" + GetParam();
  Json expected_ = read_json(folder_ + "/expected.json");
  Transformer model_ = Transformer::load(folder_, {.trainable = true});
  Batch batch_{at::tensor(expected_["tokens"].get<std::vector<int64_t>>()),
               expected_["sample_offsets"].get<std::vector<int64_t>>()};
};

TEST_P(TransformerOracle, LogProbabilitiesMatchHuggingFace) {
  const at::Tensor logprobs = next_token_logprobs(model_, batch_);
  const at::Tensor expected = at::tensor(expected_["logprobs"].get<std::vector<float>>());
  EXPECT_LT((logprobs - expected).abs().max().item<float>(), 1e-4);
}

TEST_P(TransformerOracle, GradientsMatchHuggingFace) {
  const at::Tensor logprobs = next_token_logprobs(model_, batch_);
  std::vector<float> weights;
  for (int64_t i = 0; i < logprobs.numel(); ++i) weights.push_back(static_cast<float>(std::cos(i)));
  (logprobs * at::tensor(weights)).sum().backward();
  const auto named = model_.weights().named();
  ASSERT_EQ(named.size(), expected_["gradient_norms"].size());
  for (const auto& [name, weight] : named) {
    const double norm = expected_["gradient_norms"][name];
    EXPECT_NEAR(weight.grad().norm().item<double>(), norm, 1e-4 * norm) << name;
    if (!expected_["gradients"].contains(name)) continue;
    const at::Tensor gradient = at::tensor(expected_["gradients"][name].get<std::vector<float>>());
    EXPECT_LT((weight.grad().flatten() - gradient).norm().item<double>(), 1e-4 * norm) << name;
  }
}

TEST_P(TransformerOracle, SampleDoesNotDependOnItsNeighbours) {
  const at::NoGradGuard no_gradient;
  const at::Tensor together = model_.hidden_states(batch_.tokens, batch_.offsets);
  std::vector<at::Tensor> alone;
  for (size_t s = 0; s + 1 < batch_.offsets.size(); ++s) {
    const int64_t length = batch_.offsets[s + 1] - batch_.offsets[s];
    alone.push_back(model_.hidden_states(batch_.tokens.narrow(0, batch_.offsets[s], length), std::vector<int64_t>{0, length}));
  }
  EXPECT_LT((together - at::cat(alone)).abs().max().item<float>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Models, TransformerOracle, testing::Values("llama_gqa", "llama_tied", "qwen2"),
                         [](const auto& info) { return std::string(info.param); });

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
