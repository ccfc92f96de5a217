#include "models/sample/generation_backend.h"

#include <ATen/ops/log_softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::generation_backend_test {
namespace {

const ModelConfig kConfig = reference::small_config();
const std::vector<int64_t> kPrompt{5, 9, 2, 30, 7};
const std::vector<int32_t> kBlocks{1};

// One step of one sequence, from which all tokens are drawn.
std::vector<SampledToken> step(const Weights& weights, const SamplingOptions& sampling, const std::vector<TokenDraw>& draws) {
  const auto backend = GenerationBackend::make(kConfig, {.sampling = sampling, .blocks = 2});
  const DecodeSequence sequence{.tokens = kPrompt, .cached = 0, .blocks = kBlocks};
  std::vector<SampledToken> tokens(draws.size());
  backend->step(PackedWeights(weights), {&sequence, 1}, draws, tokens);
  return tokens;
}

TEST(GenerationBackend, GivesTheTokenThatANumberStandsForAndItsLogProbability) {
  const Weights weights = reference::random_weights(kConfig, 0.15);
  const at::Tensor logprobs = at::log_softmax(reference::logits(kConfig, weights, kPrompt)[-1], 0);
  const std::vector<SampledToken> tokens = step(weights, {}, {{.uniform = 0.1}, {.uniform = 0.5}, {.uniform = 0.9}});
  size_t next = 0;
  double share = 0;  // of the ids so far
  for (int64_t id = 0; id < kConfig.vocab_size; ++id) {
    share += std::exp(logprobs[id].item<double>());
    for (; next < tokens.size() && share > 0.1 + 0.4 * static_cast<double>(next); ++next) {
      EXPECT_EQ(tokens[next].id, id) << next;
      EXPECT_NEAR(tokens[next].logprob, logprobs[id].item<float>(), 1e-4) << next;
    }
  }
  EXPECT_EQ(next, tokens.size());
}

TEST(GenerationBackend, AGreedyDrawTakesTheLikeliestTokenBesideOthersOfTheSameRow) {
  const Weights weights = reference::random_weights(kConfig, 0.15);
  const at::Tensor logits = reference::logits(kConfig, weights, kPrompt)[-1];
  const auto likeliest = logits.argmax().item<int64_t>();
  const std::vector<SampledToken> tokens =
      step(weights, {.presence_penalty = 1e6}, {{.greedy = true, .response = {&likeliest, 1}}, {.response = {&likeliest, 1}}});
  EXPECT_EQ(tokens[0].id, likeliest);
  EXPECT_NE(tokens[1].id, likeliest);
}

TEST(GenerationBackend, NamesTheSampleWhoseLogitsAreNotFinite) {
  Weights weights = reference::random_weights(kConfig);
  weights.final_norm.fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT([&] { step(weights, {}, {{.id = 42}}); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("sample 42: logits are not finite")));
}

}  // namespace
}  // namespace sluice::models::generation_backend_test
