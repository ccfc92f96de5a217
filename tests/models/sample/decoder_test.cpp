#include "models/sample/decoder.h"

#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/numbers/random.h"
#include "models/kernels/parallel.h"
#include "models/sample/sampler.h"
#include "tests/models/allocation_counter.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/cache_with_pool.h"

namespace sluice::models::decoder_test {
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
at::Tensor step(Decoder& decoder, const ModelConfig& config, const Weights& weights, CacheWithPool& cache,
                std::vector<Running*> sequences, const std::vector<int64_t>& counts) {
  std::vector<DecodeSequence> batch;
  for (size_t i = 0; i < sequences.size(); ++i) {
    Running& s = *sequences[i];
    cache.reserve(s.blocks, s.cached + counts[i]);
    batch.push_back(
        {.tokens = std::span<const int64_t>(s.tokens).subspan(s.cached, counts[i]), .cached = s.cached, .blocks = s.blocks});
    s.cached += counts[i];
  }
  const auto logits = decoder.step(PackedWeights(weights, cache.precision()), cache, batch);
  EXPECT_EQ(logits.size(), sequences.size() * static_cast<size_t>(config.vocab_size));
  return at::from_blob(const_cast<float*>(logits.data()), {static_cast<int64_t>(sequences.size()), config.vocab_size}, at::kFloat)
      .clone();
}

// Logits [V] beside those of the dense model in double precision.
void expect_near(const at::Tensor& ours, const at::Tensor& theirs) {
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-4 * (1 + theirs.abs().max().item<double>()));
}

template <class T>
T one_of(RandomStream& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

int64_t between(RandomStream& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

ModelConfig random_config(RandomStream& random) {
  const auto coin = [&] { return random.below(2) == 0; };
  ModelConfig c;
  c.vocab_size = between(random, 37, 70);
  c.hidden_size = between(random, 8, 48);
  c.intermediate_size = between(random, 4, 70);
  c.layers = between(random, 1, 3);
  c.kv_heads = between(random, 1, 3);
  c.heads = c.kv_heads * between(random, 1, 3);
  c.head_dim = one_of<int64_t>(random, {2, 4, 6, 10, 16, 20, 32});
  c.max_positions = 80;
  c.norm = one_of(random, {NormKind::kRms, NormKind::kRmsFromOne, NormKind::kLayer});
  c.norm_place = one_of(random, {NormPlace::kBefore, NormPlace::kAfter, NormPlace::kBoth});
  c.qk_norm = one_of(random, {QkNorm::kNone, QkNorm::kHead, QkNorm::kProjection});
  c.norm_eps = one_of(random, {1e-6, 1e-5, 1e-2});
  c.qkv_bias = coin();
  c.attention_output_bias = coin();
  c.mlp_bias = coin();
  c.attention_scale = one_of(random, {0.0, 0.1, 0.8});
  c.attention_softcap = one_of(random, {0.0, 1.0, 50.0});
  c.logit_softcap = one_of(random, {0.0, 3.0, 30.0});
  if (coin())
    for (int64_t i = 0; i < c.layers; ++i) c.windows.push_back(between(random, 0, 20));
  c.learned_positions = random.below(4) == 0;
  c.rope.dims = coin() ? 0 : 2 * between(random, 1, c.head_dim / 2);
  c.rope.theta = one_of(random, {100.0, 10000.0});
  c.rope.scaling = one_of(random, {RopeScaling::kNone, RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kDynamic});
  c.rope.factor = 2.5;
  c.rope.original_positions = 60;
  c.rotary_neighbours = coin();
  c.more_ropes = {{.theta = 30.0}};
  if (coin())
    for (int64_t i = 0; i < c.layers; ++i) c.rope_of_layer.push_back(between(random, kNoRope, 1));
  c.activation = one_of(random, {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu});
  c.gated_mlp = coin();
  c.embedding_scale = one_of(random, {1.0, 3.5});
  c.tied_embeddings = coin();
  return c;
}

// Steps of random sequences and random chunks of them until all are read, with the logits of each sequence's last step.
std::vector<at::Tensor> in_random_steps(const ModelConfig& config, const Weights& weights, std::vector<Running> running,
                                        RandomStream& random, const std::vector<at::Tensor>& expected) {
  Decoder decoder(config);
  CacheWithPool cache(config, one_of<int64_t>(random, {16, 32}), 40);
  std::vector<at::Tensor> last(running.size());
  const auto left = [](const Running& r) { return static_cast<int64_t>(r.tokens.size()) - r.cached; };
  while (std::any_of(running.begin(), running.end(), [&](const Running& r) { return left(r) > 0; })) {
    std::vector<Running*> batch;
    std::vector<int64_t> counts;
    std::vector<size_t> indices;
    for (size_t i = 0; i < running.size(); ++i) {
      if (left(running[i]) == 0 || random.below(4) == 0) continue;
      batch.push_back(&running[i]);
      counts.push_back(random.below(2) == 0 ? 1 : between(random, 1, left(running[i])));
      indices.push_back(i);
    }
    if (batch.empty()) continue;
    const at::Tensor out = step(decoder, config, weights, cache, batch, counts);
    for (size_t row = 0; row < batch.size(); ++row) {
      last[indices[row]] = out[static_cast<int64_t>(row)];
      expect_near(out[static_cast<int64_t>(row)], expected[indices[row]][batch[row]->cached - 1]);
    }
  }
  return last;
}

// Near the dense model at every step, and to the bit what one step alone gives.
void expect_the_dense_model(const ModelConfig& config, RandomStream& random) {
  const int64_t threads = loop_threads();
  set_loop_threads(1);  // where there is nothing to share, threads only wait for each other
  const Weights weights = reference::random_weights(config), wide = reference::in_double(weights);
  std::vector<Running> running(between(random, 1, 4));
  std::vector<at::Tensor> expected;
  for (Running& r : running) {
    r.tokens = tokens_of(between(random, 1, std::min<int64_t>(60, config.steady_positions())), between(random, 0, 1000));
    expected.push_back(reference::logits(config, wide, r.tokens));
  }
  set_loop_threads(random.below(8) == 0 ? 3 : 1);
  const std::vector<at::Tensor> last = in_random_steps(config, weights, running, random, expected);
  set_loop_threads(1);
  for (size_t i = 0; i < running.size(); ++i) {
    Decoder decoder(config);
    CacheWithPool cache(config, 16, 4);
    Running alone{.tokens = running[i].tokens};
    const int64_t count = static_cast<int64_t>(alone.tokens.size());
    EXPECT_TRUE(step(decoder, config, weights, cache, {&alone}, {count})[0].equal(last[i])) << "sequence " << i;
  }
  set_loop_threads(threads);
}

class DecoderSwitches : public ::testing::TestWithParam<reference::NamedConfig> {};

TEST_P(DecoderSwitches, AgreesWithTheDenseModelHoweverItsStepsAreCut) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    RandomStream random(seed, 1);
    expect_the_dense_model(GetParam().config, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, DecoderSwitches, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return info.param.name; });

TEST(Decoder, RandomModelsAgreeWithTheDenseModelHoweverTheirStepsAreCut) {
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 0);
    at::manual_seed(seed);
    expect_the_dense_model(random_config(random), random);
  }
}

TEST(Decoder, AgreesWithTheDenseModelWithAHeadOfManyLanes) {
  ModelConfig config = reference::small_config();
  config.head_dim = 64;
  config.hidden_size = 96;
  config.rope.theta = 500000;
  RandomStream random(1, 2);
  expect_the_dense_model(config, random);
}

// Tables of rotary positions grow with the samples; what was rotated before must fit what is rotated later.
TEST(Decoder, ASequenceMayGrowFarBeyondTheFirstPositions) {
  ModelConfig config = reference::small_config();
  config.layers = 1;
  config.max_positions = 3000;
  const Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  CacheWithPool cache(config, 16, 300);
  Running sequence{.tokens = tokens_of(2100, 1)};
  step(decoder, config, weights, cache, {&sequence}, {1000});
  step(decoder, config, weights, cache, {&sequence}, {500});
  const at::Tensor out = step(decoder, config, weights, cache, {&sequence}, {600});
  const at::Tensor all = reference::logits(config, reference::in_double(weights), sequence.tokens);
  EXPECT_LT((out[0] - all[2099]).abs().max().item<double>(), 1e-3);
}

TEST(Decoder, ARowHasTheSameBitsHoweverItIsBatchedAndChunked) {
  const ModelConfig config = reference::small_config();
  const Weights weights = reference::random_weights(config);
  const int64_t threads = loop_threads();
  Decoder decoder(config);
  CacheWithPool cache(config, 16, 100);
  Running whole{.tokens = tokens_of(50, 3)}, cut{.tokens = whole.tokens}, other{.tokens = tokens_of(60, 4)};
  const at::Tensor alone = step(decoder, config, weights, cache, {&whole}, {50});
  set_loop_threads(3);
  at::Tensor out;
  for (const int64_t chunk : {3, 17, 1, 1, 20, 8}) out = step(decoder, config, weights, cache, {&other, &cut}, {5, chunk});
  set_loop_threads(threads);
  EXPECT_TRUE(out[1].equal(alone[0]));
}

TEST(Decoder, ReadsTheWeightsAtEveryStep) {
  const ModelConfig config = reference::small_config();
  Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  CacheWithPool cache(config, 16, 100);
  Running before{.tokens = tokens_of(9, 5)}, after{.tokens = before.tokens};
  step(decoder, config, weights, cache, {&before}, {9});
  for (LayerWeights& layer : weights.layers)
    for (at::Tensor* tensor :
         {&layer.query.weight, &layer.value.weight, &layer.feed_forward[Mlp::kUp].weight, &layer.attention_norm})
      tensor->mul_(1.5);
  const at::Tensor out = step(decoder, config, weights, cache, {&after}, {9});
  const at::Tensor expected = reference::logits(config, weights, after.tokens)[8];
  EXPECT_LT((out[0] - expected).abs().max().item<float>(), 1e-3f);
}

TEST(Decoder, LogitsAreOnlyMadeForWhoWantsThem) {
  const ModelConfig config = reference::small_config();
  const Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  CacheWithPool cache(config, 16, 100);
  const std::vector<int64_t> first = tokens_of(7, 6), second = tokens_of(4, 7);
  std::vector<int32_t> blocks_a, blocks_b;
  cache.reserve(blocks_a, 7);
  cache.reserve(blocks_b, 4);
  const std::vector<DecodeSequence> batch = {{.tokens = first, .blocks = blocks_a, .wants_logits = false},
                                             {.tokens = second, .blocks = blocks_b}};
  const auto logits = decoder.step(PackedWeights(weights, cache.precision()), cache, batch);
  ASSERT_EQ(logits.size(), 37u);
  const at::Tensor expected = reference::logits(config, weights, second)[3];
  for (int64_t id = 0; id < 37; ++id) EXPECT_NEAR(logits[id], expected[id].item<float>(), 1e-3);
}

// A sum whose last bits differ may round to the next bfloat16, so not to the bit. A token that is near the bound between two
// experts might go to the other one: here it goes through all.
TEST(Decoder, InBfloat16OnlyOperandsAreRounded) {
  for (auto& [name, config] : reference::configs_of_every_switch()) {
    config.experts.per_token = config.experts.count;
    at::manual_seed(7);
    const Weights weights = reference::random_weights(config, 0.15);
    const std::vector<int64_t> tokens = tokens_of(std::min<int64_t>(40, config.steady_positions()), 3);
    const int64_t count = static_cast<int64_t>(tokens.size());
    Decoder decoder(config);
    CacheWithPool cache(config, 16, 100, Precision::kBfloat16);
    Running sequence{.tokens = tokens};
    if (count > 9) step(decoder, config, weights, cache, {&sequence}, {count - 9});
    for (int64_t i = 0; i < std::min<int64_t>(count, 8); ++i) step(decoder, config, weights, cache, {&sequence}, {1});
    const at::Tensor out = step(decoder, config, weights, cache, {&sequence}, {count - sequence.cached})[0];
    const at::Tensor rounded = reference::logits(config, reference::in_double(weights), tokens, Precision::kBfloat16)[-1];
    const at::Tensor exact = reference::logits(config, reference::in_double(weights), tokens)[-1];
    const double size = exact.abs().max().item<double>();
    EXPECT_LT((out - rounded).abs().max().item<double>(), 0.004 * size) << name;
    EXPECT_LT((out - exact).abs().max().item<double>(), 0.04 * size) << name;
  }
}

TEST(Decoder, InBfloat16ARowHasTheSameBitsHoweverItIsBatchedAndChunked) {
  ModelConfig config = reference::small_config();
  config.head_dim = 40;
  const Weights weights = reference::random_weights(config);
  Decoder decoder(config);
  CacheWithPool cache(config, 16, 100, Precision::kBfloat16);
  Running whole{.tokens = tokens_of(50, 3)}, cut{.tokens = whole.tokens}, other{.tokens = tokens_of(60, 4)};
  const at::Tensor alone = step(decoder, config, weights, cache, {&whole}, {50});
  at::Tensor out;
  for (const int64_t chunk : {3, 17, 1, 1, 20, 8}) out = step(decoder, config, weights, cache, {&other, &cut}, {5, chunk});
  EXPECT_TRUE(out[1].equal(alone[0]));
}

TEST(Decoder, AStepThatIsNotLargerThanThoseBeforeAllocatesNothing) {
  const int64_t threads = loop_threads();
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16})
    for (const int count : {1, 2}) {
      set_loop_threads(count);
      const ModelConfig config = reference::small_config();
      const PackedWeights weights(reference::random_weights(config), precision);
      Decoder decoder(config);
      Sampler sampler({.top_k = 5, .top_p = 0.9, .min_p = 0.01, .repetition_penalty = 1.1, .frequency_penalty = 0.1}, 37);
      CacheWithPool cache(config, 16, 8, precision);
      std::vector<int32_t> first, second;
      cache.reserve(first, 64);
      cache.reserve(second, 64);
      const std::vector<int64_t> tokens = tokens_of(64, 1);
      RandomStream stream(1, 0);
      std::vector<DecodeSequence> batch(2);
      std::vector<TokenDraw> draws(2);
      std::vector<SampledToken> drawn(2);
      const auto decode = [&](size_t position) {
        const auto next = std::span(tokens).subspan(position, 1);
        batch[0] = {.tokens = next, .cached = static_cast<int64_t>(position), .blocks = first};
        batch[1] = {.tokens = next, .cached = static_cast<int64_t>(position), .blocks = second};
        for (size_t i = 0; i < 2; ++i) {
          draws[i] = {.row = static_cast<int64_t>(i), .uniform = stream.uniform(), .prompt = std::span(tokens).first(position)};
        }
        sampler.sample(decoder.step(weights, cache, batch), draws, drawn);
      };
      for (size_t position = 0; position < 33; ++position) decode(position);
      EXPECT_EQ(allocations_in([&] {
                  for (size_t position = 33; position < 48; ++position) decode(position);
                }),
                0)
          << count << " threads";
    }
  set_loop_threads(threads);
}

}  // namespace
}  // namespace sluice::models::decoder_test
