#include "models/layers/column_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/sample/decoder.h"
#include "models/sample/packed_weights.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/cache_with_pool.h"
#include "tests/models/segments_in_threads.h"

// What several ranks sample together, each with some columns of all matrices or some experts, against one that has all.
namespace sluice::models::column_share_test {
namespace {

using testing::SegmentsInThreads;

constexpr int64_t kBlock = 16;

// Two sequences, one of which is read in chunks beside the first tokens of the other, and then some tokens of both.
std::vector<std::vector<DecodeSequence>> shared_steps(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                                                      const std::vector<std::vector<int32_t>>& blocks) {
  const auto of = [](const std::vector<int64_t>& tokens, size_t first, size_t count, const std::vector<int32_t>& table,
                     bool wants) {
    return DecodeSequence{.tokens = std::span(tokens).subspan(first, count),
                          .cached = static_cast<int64_t>(first),
                          .blocks = table,
                          .wants_logits = wants};
  };
  return {{of(a, 0, 11, blocks[0], false)},
          {of(a, 11, 9, blocks[0], true), of(b, 0, 5, blocks[1], true)},
          {of(a, 20, 1, blocks[0], true), of(b, 5, 1, blocks[1], true)},
          {of(b, 6, 1, blocks[1], true)},
          {of(a, 21, 1, blocks[0], true), of(b, 7, 1, blocks[1], true)}};
}

// The logits of all steps; of ranks that do not lead none.
std::vector<float> logits_of(const ModelConfig& config, const Weights& weights, Precision precision, const ColumnShare& share) {
  std::vector<int64_t> a, b;
  for (int64_t i = 0; i < 22; ++i) a.push_back((i * i + 3) % config.vocab_size), b.push_back((7 * i + 1) % config.vocab_size);
  const PackedWeights packed(part_of(weights, share), precision);
  Decoder decoder(config, share);
  const std::vector<std::vector<int32_t>> blocks{{0, 1}, {2}};
  std::vector<float> all;
  if (!share.has_columns()) {
    for (const auto& step : shared_steps(a, b, blocks)) decoder.assist(packed, step);
    return all;
  }
  KvCache cache(heads_of(config, share.ranks), kBlock, 4, precision);
  for (const auto& step : shared_steps(a, b, blocks)) {
    const std::span<const float> logits = decoder.step(packed, cache, step);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

struct ShareCase {
  std::string name;
  ModelConfig config;
  Precision precision;
};

std::vector<ShareCase> share_cases() {
  std::vector<ShareCase> cases;
  for (auto [name, config] : reference::configs_of_every_switch()) {
    config.kv_heads = 4, config.heads = 8;
    config.rope.original_positions = std::max<int64_t>(config.rope.original_positions, 30);  // the samples' length at least
    cases.push_back({name, config, Precision::kFloat32});
    cases.push_back({std::string(name) + "InBfloat16", config, Precision::kBfloat16});
  }
  return cases;
}

class ColumnShares : public ::testing::TestWithParam<ShareCase> {};

TEST_P(ColumnShares, GiveTheBitsOfOneRank) {
  const auto& [name, config, precision] = GetParam();
  const Weights weights = reference::random_weights(config);
  const std::vector<float> alone = logits_of(config, weights, precision, {});
  for (const int ranks : {2, 4}) {
    SegmentsInThreads threads(ranks);
    std::vector<std::vector<float>> shared(static_cast<size_t>(ranks));
    threads.on_all(0, [&](const Segment& place) {
      shared[static_cast<size_t>(place.place)] =
          logits_of(config, weights, precision, {.place = place.place, .ranks = ranks, .exchange = place.exchange});
    });
    EXPECT_EQ(shared.front(), alone) << ranks << " ranks";
    for (int place = 1; place < ranks; ++place) EXPECT_TRUE(shared[static_cast<size_t>(place)].empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, ColumnShares, ::testing::ValuesIn(share_cases()),
                         [](const auto& info) { return info.param.name; });

// A mixture with any number of experts that so many ranks divide.
ModelConfig random_mixture(uint64_t seed, int expert_ranks) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](int64_t most) { return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  ModelConfig config = reference::small_config();
  config.kv_heads = 4, config.heads = 8;
  config.experts = {.count = expert_ranks * up_to(3), .size = up_to(40), .normalised = random() % 2 == 0};
  config.experts.per_token = up_to(config.experts.count);
  if (random() % 2 == 0) config.experts.shared_size = 4 + up_to(40);
  if (random() % 2 == 0) config.norm_place = NormPlace::kBoth;
  config.qk_norm = std::array{QkNorm::kNone, QkNorm::kHead, QkNorm::kProjection}[random() % 3];
  if (random() % 2 == 0) {  // some layers have an MLP instead
    config.layers = 3;
    config.experts.dense_layers = random() % 2 == 0 ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1};
  }
  return config;
}

// Ranks with columns, those with experts.
using SharedBy = std::pair<int, int>;

TEST(ExpertShares, GiveTheBitsOfOneRank) {
  uint64_t seed = 0;
  for (const auto& [ranks, expert_ranks] : std::vector<SharedBy>{{1, 2}, {2, 2}, {1, 3}, {1, 4}, {2, 4}, {4, 4}}) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      for (int of_each = 0; of_each < 4; ++of_each) {
        const ModelConfig config = random_mixture(++seed, expert_ranks);
        const Weights weights = reference::random_weights(config);
        const std::vector<float> alone = logits_of(config, weights, precision, {});
        std::vector<std::vector<float>> shared(static_cast<size_t>(expert_ranks));
        SegmentsInThreads(expert_ranks).on_all(0, [&, ranks = ranks, expert_ranks = expert_ranks](const Segment& place) {
          shared[static_cast<size_t>(place.place)] =
              logits_of(config, weights, precision,
                        {.place = place.place, .ranks = ranks, .exchange = place.exchange, .expert_ranks = expert_ranks});
        });
        EXPECT_EQ(shared.front(), alone) << ranks << " of " << expert_ranks << " ranks, seed " << seed;
        for (size_t place = 1; place < shared.size(); ++place) EXPECT_TRUE(shared[place].empty());
      }
    }
  }
}

// What a rank holds of the experts is the part that it owns: of those after the columns nothing else.
void expect_own_experts_alone(int64_t layers, const std::vector<int64_t>& dense_layers) {
  ModelConfig config = reference::small_config();
  config.model_type = "qwen3", config.qk_norm = QkNorm::kHead;
  config.kv_heads = config.heads = 4, config.layers = layers;
  config.experts = {.count = 8, .per_token = 2, .size = 32, .dense_layers = dense_layers};
  const auto bytes_of = [&](const ColumnShare& share) { return PackedWeights::bytes_for(config, Precision::kFloat32, share); };
  const int64_t of_expert = PackedMatrix::bytes_for(Precision::kFloat32, 64, config.hidden_size) +
                            PackedMatrix::bytes_for(Precision::kFloat32, config.hidden_size, 32);
  const int64_t all = bytes_of({}), first = bytes_of({.expert_ranks = 4}), last = bytes_of({.place = 3, .expert_ranks = 4});
  EXPECT_EQ(first, all - config.mixtures() * 6 * of_expert);
  EXPECT_EQ(last, config.mixtures() * 2 * of_expert);
  const Weights weights = reference::random_weights(config);
  for (const int ranks : {1, 2}) {
    for (int place = 0; place < 4; ++place) {
      const ColumnShare share{.place = place, .ranks = ranks, .expert_ranks = 4};
      EXPECT_EQ(PackedWeights(part_of(weights, share)).bytes(), bytes_of(share)) << place << " of " << ranks;
    }
  }
}

TEST(ExpertShares, HoldTheirExpertsAlone) {
  expect_own_experts_alone(2, {});
  expect_own_experts_alone(4, {0, 2});
}

TEST(ColumnShare, EveryColumnIsOfOnePlace) {
  for (const int ranks : {1, 2, 3, 7}) {
    for (const int64_t size : {7, 8, 100, 151936}) {
      int64_t next = 0;
      for (int place = 0; place < ranks; ++place) {
        const TokenRange columns = ColumnShare{.place = place, .ranks = ranks}.of(size);
        EXPECT_EQ(columns.begin, next);
        EXPECT_LE(columns.size(), (size + ranks - 1) / ranks);
        for (const int64_t column : {columns.begin, columns.end - 1})
          EXPECT_EQ((ColumnShare{.place = 0, .ranks = ranks}.place_of(size, column)), place);
        next = columns.end;
      }
      EXPECT_EQ(next, size);
    }
  }
}

}  // namespace
}  // namespace sluice::models::column_share_test
