#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/sample/decoder.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/cache_with_pool.h"

// The log-probability that a token was sampled with, against that which the forward pass of training gives it.
namespace sluice::models::generation_agreement_test {
namespace {

// Of every token but the first, read one by one.
at::Tensor sampled_logprobs(const Transformer& model, const std::vector<int64_t>& tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const PackedWeights weights(model.weights(), model.compute().precision);
  CacheWithPool cache(model.config(), 16, 16, model.compute().precision);
  Decoder decoder(model.config());
  std::vector<int32_t> blocks;
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t + 1 < count; ++t) {
    cache.reserve(blocks, t + 1);
    const DecodeSequence sequence{.tokens = std::span<const int64_t>(tokens).subspan(t, 1), .cached = t, .blocks = blocks};
    const auto logits = decoder.step(weights, cache, std::vector<DecodeSequence>{sequence});
    const at::Tensor row = at::from_blob(const_cast<float*>(logits.data()), {model.config().vocab_size}, at::kFloat);
    rows.push_back(at::log_softmax(row, 0)[tokens[static_cast<size_t>(t) + 1]]);
  }
  return at::stack(rows);
}

at::Tensor trained_logprobs(const Transformer& model, const std::vector<int64_t>& tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const at::Tensor ids = at::from_blob(const_cast<int64_t*>(tokens.data()), {count}, at::kLong);
  const at::Tensor hidden = model.hidden_states(ids, std::vector<int64_t>{0, count});
  return action_logprobs(hidden.narrow(0, 0, count - 1), model.weights().head, ids.narrow(0, 1, count - 1).contiguous(),
                         {.softcap = model.config().logit_softcap, .precision = model.compute().precision});
}

class GenerationAgreement : public ::testing::TestWithParam<reference::NamedConfig> {
 protected:
  void SetUp() override { at::manual_seed(3); }  // the bound on roundings is one of these weights
};

TEST_P(GenerationAgreement, TrainingGivesTheLogProbabilitiesThatWereSampledWith) {
  const at::NoGradGuard no_gradient;
  const ModelConfig& config = GetParam().config;
  const int64_t count = std::min<int64_t>(80, config.steady_positions());
  const at::Tensor ids = at::randint(config.vocab_size, {count}, at::kLong);
  const std::vector<int64_t> tokens(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + count);
  const Weights weights = reference::random_weights(config, 0.2);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Transformer model(config, weights, {precision});
    const at::Tensor difference = (sampled_logprobs(model, tokens) - trained_logprobs(model, tokens)).abs();
    const bool rounds = precision == Precision::kBfloat16;
    EXPECT_LT(difference.max().item<float>(), rounds ? 3e-2 : 1e-4);
    EXPECT_LT(difference.mean().item<float>(), rounds ? 8e-3 : 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, GenerationAgreement, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::models::generation_agreement_test
