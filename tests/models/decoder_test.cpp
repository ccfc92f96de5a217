#include "models/decoder.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/models/dense_reference.h"

namespace sluice::models {
namespace {

std::vector<int64_t> tokens_of(int64_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back((seed * 31 + i * i * 7 + i) % 37);
  return tokens;
}

struct Running {
  std::vector<int64_t> tokens;
  std::vector<int32_t> blocks;
  int64_t cached = 0;
};

// The logits [V] that follow each sequence's next `counts[i]` tokens.
at::Tensor step(Decoder& decoder, const ModelConfig& config, const Weights& weights, KvCache& cache,
                std::vector<Running*> sequences, const std::vector<int64_t>& counts) {
  std::vector<DecodeSequence> batch;
  for (size_t i = 0; i < sequences.size(); ++i) {
    Running& s = *sequences[i];
    cache.reserve(s.blocks, s.cached + counts[i]);
    batch.push_back(
        {.tokens = std::span<const int64_t>(s.tokens).subspan(s.cached, counts[i]), .cached = s.cached, .blocks = s.blocks});
    s.cached += counts[i];
  }
  const auto logits = decoder.step(weights, cache, batch);
  EXPECT_EQ(logits.size(), sequences.size() * static_cast<size_t>(config.vocab_size));
  return at::from_blob(const_cast<float*>(logits.data()), {static_cast<int64_t>(sequences.size()), config.vocab_size}, at::kFloat)
      .clone();
}

void expect_the_dense_model(const ModelConfig& config) {
  const Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  KvCache cache(config, 16, 100);
  Running a{.tokens = tokens_of(40, 1)}, b{.tokens = tokens_of(23, 2)};
  const at::Tensor all_a = reference::logits(config, weights, a.tokens), all_b = reference::logits(config, weights, b.tokens);
  const auto expect_near = [](const at::Tensor& ours, const at::Tensor& theirs) {
    EXPECT_LT((ours - theirs).abs().max().item<float>(), 2e-4f * (1 + theirs.abs().max().item<float>()));
  };
  at::Tensor out = step(decoder, config, weights, cache, {&a, &b}, {20, 5});
  expect_near(out[0], all_a[19]);
  expect_near(out[1], all_b[4]);
  for (int64_t i = 0; i < 12; ++i) {  // one decodes while the other reads chunks of its prompt
    const int64_t chunk = i % 2 + 1;
    out = step(decoder, config, weights, cache, {&a, &b}, {1, chunk});
    expect_near(out[0], all_a[a.cached - 1]);
    expect_near(out[1], all_b[b.cached - 1]);
  }
}

TEST(Decoder, AgreesWithTheDenseModel) { expect_the_dense_model(reference::small_config()); }

TEST(Decoder, AgreesWithTheDenseModelWithBiasesAndTiedEmbeddings) {
  ModelConfig config = reference::small_config();
  config.qkv_bias = true;
  config.tied_embeddings = true;
  expect_the_dense_model(config);
}

TEST(Decoder, AgreesWithTheDenseModelWithAHeadOfManyLanes) {
  ModelConfig config = reference::small_config();
  config.head_dim = 64;
  config.hidden_size = 96;
  config.rope.theta = 500000;
  expect_the_dense_model(config);
}

TEST(Decoder, ARowHasTheSameBitsHoweverItIsBatchedAndChunked) {
  const ModelConfig config = reference::small_config();
  const Weights weights = reference::random_weights(config);
  const int threads = at::get_num_threads();
  Decoder decoder(config);
  KvCache cache(config, 16, 100);
  Running whole{.tokens = tokens_of(50, 3)}, cut{.tokens = whole.tokens}, other{.tokens = tokens_of(60, 4)};
  const at::Tensor alone = step(decoder, config, weights, cache, {&whole}, {50});
  at::set_num_threads(3);
  at::Tensor out;
  for (const int64_t chunk : {3, 17, 1, 1, 20, 8}) out = step(decoder, config, weights, cache, {&other, &cut}, {5, chunk});
  at::set_num_threads(threads);
  EXPECT_TRUE(out[1].equal(alone[0]));
}

TEST(Decoder, ReadsTheWeightsAtEveryStep) {
  const ModelConfig config = reference::small_config();
  Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  KvCache cache(config, 16, 100);
  Running before{.tokens = tokens_of(9, 5)}, after{.tokens = before.tokens};
  step(decoder, config, weights, cache, {&before}, {9});
  for (LayerWeights& layer : weights.layers)
    for (at::Tensor* tensor : {&layer.query, &layer.value, &layer.up, &layer.attention_norm}) tensor->mul_(1.5);
  const at::Tensor out = step(decoder, config, weights, cache, {&after}, {9});
  const at::Tensor expected = reference::logits(config, weights, after.tokens)[8];
  EXPECT_LT((out[0] - expected).abs().max().item<float>(), 1e-3f);
}

TEST(Decoder, LogitsAreOnlyMadeForWhoWantsThem) {
  const ModelConfig config = reference::small_config();
  const Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  KvCache cache(config, 16, 100);
  const std::vector<int64_t> first = tokens_of(7, 6), second = tokens_of(4, 7);
  std::vector<int32_t> blocks_a, blocks_b;
  cache.reserve(blocks_a, 7);
  cache.reserve(blocks_b, 4);
  const std::vector<DecodeSequence> batch = {{.tokens = first, .blocks = blocks_a, .wants_logits = false},
                                             {.tokens = second, .blocks = blocks_b}};
  const auto logits = decoder.step(weights, cache, batch);
  ASSERT_EQ(logits.size(), 37u);
  const at::Tensor expected = reference::logits(config, weights, second)[3];
  for (int64_t id = 0; id < 37; ++id) EXPECT_NEAR(logits[id], expected[id].item<float>(), 1e-3);
}

}  // namespace
}  // namespace sluice::models
