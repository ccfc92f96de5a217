#include "models/layers/column_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/sample/decoder.h"
#include "models/sample/packed_weights.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/cache_with_pool.h"
#include "tests/models/segments_in_threads.h"

// What several ranks sample together, each with some columns of all matrices, against one that has all.
namespace sluice::models {
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
  KvCache cache(heads_of(config, share.ranks), kBlock, 4, precision);
  Decoder decoder(config, share);
  const std::vector<std::vector<int32_t>> blocks{{0, 1}, {2}};
  std::vector<float> all;
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
    if (config.qk_norm == QkNorm::kProjection) continue;
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
}  // namespace sluice::models
