#include "models/sample/head_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "tests/models/instruction_sets.h"
#include "tests/models/sample/cache_with_pool.h"
#include "tests/models/tensors.h"

namespace sluice::models::head_kernels_test {
namespace {

float* data(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

at::Tensor narrowed(const at::Tensor& x) { return x.to(at::kBFloat16); }
Bfloat16* narrow_data(const at::Tensor& x) { return static_cast<Bfloat16*>(x.mutable_data_ptr()); }

// In double precision, by the definition.
at::Tensor normalized(NormKind kind, const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  const at::Tensor wide = x.to(at::kDouble), factor = weight.to(at::kDouble);
  const at::Tensor unit = wide * at::rsqrt(wide.pow(2).mean(-1, true) + epsilon);
  return kind == NormKind::kRms ? unit * factor : unit * (factor + 1);
}

/// Five tokens of one sequence whose first two are cached already; 4 query heads, 2 key heads, D 12.
struct Heads {
  static constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 12, kTokens = 3, kCached = 2;

  Heads() {
    config.layers = 2;
    config.heads = kHeads;
    config.kv_heads = kKvHeads;
    config.head_dim = kDim;
    cache.emplace(config, 16, 4);
    cache->reserve(blocks, kCached + kTokens);
    for (int64_t t = 0; t < kTokens; ++t) places.push_back({.position = kCached + t, .block = blocks[0]});
  }

  HeadArguments arguments(const at::Tensor& qkv) const {
    return {.cache = *cache, .layer = 1, .heads = kHeads, .tokens = places, .qkv = data(qkv)};
  }

  // What the cache holds of the new tokens: [T, Nk, D] of the keys, or of the values.
  at::Tensor cached(bool keys) const {
    at::Tensor out = at::zeros({kTokens, kKvHeads, kDim}, at::kFloat);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t head = 0; head < kKvHeads; ++head)
        for (int64_t d = 0; d < kDim; ++d) {
          const float* block = cache->head_block(blocks[0], 1, head);
          out[t][head][d] = keys ? block[d * 16 + kCached + t] : block[(16 + kCached + t) * kDim + d];
        }
    return out;
  }

  ModelConfig config;
  std::optional<CacheWithPool> cache;
  std::vector<int32_t> blocks;
  std::vector<TokenPlace> places;
};

at::Tensor random_qkv() { return at::randn({Heads::kTokens, (Heads::kHeads + 2 * Heads::kKvHeads) * Heads::kDim}, at::kFloat); }

// heads [T, N, D], positions from kCached on; pairs are (i, i + dims/2) of the first `dims`, or (2i, 2i + 1).
at::Tensor rotated(const at::Tensor& heads, int64_t dims, double theta, bool neighbours = false) {
  at::Tensor out = heads.clone();
  for (int64_t t = 0; t < heads.size(0); ++t)
    for (int64_t i = 0; i < dims / 2; ++i) {
      const double angle = static_cast<double>(Heads::kCached + t) * std::pow(theta, -2.0 * static_cast<double>(i) / dims);
      const int64_t first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + dims / 2;
      const at::Tensor x = heads[t].select(1, first), y = heads[t].select(1, second);
      out[t].select(1, first).copy_(x * std::cos(angle) - y * std::sin(angle));
      out[t].select(1, second).copy_(y * std::cos(angle) + x * std::sin(angle));
    }
  return out;
}

TEST(PrepareHeads, OnlyTheFirstDimensionsOfAHeadAreRotatedWithPartialRotaryPositions) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const auto& [dims, neighbours] : {std::pair{2, false}, {8, false}, {12, false}, {8, true}, {12, true}}) {
      Heads h;
      h.config.rope.dims = dims;
      h.config.rotary_neighbours = neighbours;
      const RotaryTable rotary(h.config, 16);
      const at::Tensor qkv = random_qkv(), before = qkv.clone().view({3, 8, 12});
      HeadArguments arguments = h.arguments(qkv);
      arguments.rotary = &rotary;
      prepare_heads(arguments, set);
      const at::Tensor expected = rotated(before.slice(1, 0, 6), dims, h.config.rope.theta, neighbours);
      EXPECT_LT(largest_difference(qkv.view({3, 8, 12}).slice(1, 0, 6), expected), 1e-6) << dims;
      EXPECT_TRUE(h.cached(true).equal(qkv.view({3, 8, 12}).slice(1, 4, 6))) << dims;
      EXPECT_TRUE(h.cached(false).equal(before.slice(1, 6))) << dims;
    }
}

TEST(PrepareHeads, NothingIsRotatedWithoutRotaryPositions) {
  Heads h;
  const at::Tensor qkv = random_qkv(), before = qkv.clone();
  prepare_heads(h.arguments(qkv));
  EXPECT_TRUE(qkv.equal(before));
  EXPECT_TRUE(h.cached(true).equal(before.view({3, 8, 12}).slice(1, 4, 6)));
}

// Keys in pairs, and a zero after the last of an odd head.
TEST(PrepareHeads, ABfloat16CacheGetsRoundedKeysAndValuesAndSoDoQueries) {
  for (const InstructionSet set : runnable_instruction_sets()) {
    ModelConfig config;
    config.layers = 1;
    config.heads = 2;
    config.kv_heads = 1;
    config.head_dim = 5;
    const KvCache cache(config, 16, 1, Precision::kBfloat16);
    const at::Tensor qkv = at::randn({1, 20}, at::kFloat), queries = narrowed(at::ones({2, 6}, at::kFloat));
    const TokenPlace place{.position = 3, .block = 0};
    prepare_heads({.cache = cache, .heads = 2, .tokens = {&place, 1}, .qkv = data(qkv), .narrow_queries = narrow_data(queries)},
                  set);
    const at::Tensor rounded = narrowed(qkv).view({4, 5});
    EXPECT_TRUE(queries.slice(1, 0, 5).equal(rounded.slice(0, 0, 2)));
    EXPECT_EQ(queries.select(1, 5).abs().max().item<float>(), 0);
    const Bfloat16* const keys = cache.head_block<Bfloat16>(0, 0, 0);
    for (int64_t d = 0; d < 6; ++d)
      EXPECT_EQ(to_float(keys[(d / 2 * 16 + 3) * 2 + d % 2]), d < 5 ? rounded[2][d].item<float>() : 0.0f) << d;
    for (int64_t d = 0; d < 5; ++d) EXPECT_EQ(to_float(keys[16 * 6 + 3 * 5 + d]), rounded[3][d].item<float>()) << d;
  }
}

TEST(PrepareHeads, QueriesAndKeysAreNormalisedBeforeTheyAreRotated) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const QkNorm kind : {QkNorm::kHead, QkNorm::kProjection})
      for (const NormKind norm : {NormKind::kRms, NormKind::kRmsFromOne}) {
        Heads h;
        const RotaryTable rotary(h.config, 16);
        const bool whole = kind == QkNorm::kProjection;
        const at::Tensor query_weight = at::randn({whole ? 48 : 12}, at::kFloat), key_weight = at::randn({whole ? 24 : 12});
        const at::Tensor qkv = random_qkv();
        const auto rows = [&](const at::Tensor& x, int64_t heads) { return x.reshape({3, whole ? 1 : heads, -1}); };
        const at::Tensor queries = normalized(norm, rows(qkv.slice(1, 0, 48), 4), query_weight, 1e-6).view({3, 4, 12});
        const at::Tensor keys = normalized(norm, rows(qkv.slice(1, 48, 72), 2), key_weight, 1e-6).view({3, 2, 12});
        const at::Tensor values = qkv.slice(1, 72).clone().view({3, 2, 12});
        HeadArguments arguments = h.arguments(qkv);
        arguments.rotary = &rotary;
        arguments.qk_norm = kind;
        arguments.query_norm = {.kind = norm, .weight = data(query_weight)};
        arguments.key_norm = {.kind = norm, .weight = data(key_weight)};
        prepare_heads(arguments, set);
        EXPECT_LT(largest_difference(qkv.view({3, 8, 12}).slice(1, 0, 4), rotated(queries, 12, h.config.rope.theta)), 5e-6);
        EXPECT_LT(largest_difference(h.cached(true), rotated(keys, 12, h.config.rope.theta)), 5e-6);
        EXPECT_TRUE(h.cached(false).equal(values));
      }
}

}  // namespace
}  // namespace sluice::models::head_kernels_test
