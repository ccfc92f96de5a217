#include "models/sample/paged_attention.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "models/kernels/attention_kernels.h"
#include "models/kernels/parallel.h"
#include "tests/models/dense_reference.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/sample/cache_with_pool.h"

namespace sluice::models::paged_attention_test {
namespace {

struct Sequence {
  at::Tensor q, k, v;  // [heads, T, D], [kv_heads, T, D]
  std::vector<int32_t> blocks;
};

constexpr Precision kPrecisions[] = {Precision::kFloat32, Precision::kBfloat16};

template <class Element>
constexpr Element kNan{};
template <>
constexpr float kNan<float> = std::numeric_limits<float>::quiet_NaN();
template <>
constexpr Bfloat16 kNan<Bfloat16> = static_cast<Bfloat16>(0x7fc0);

struct Case {
  ModelConfig config;
  CacheWithPool cache;
  PagedScores scores;

  Case(int64_t heads, int64_t kv_heads, int64_t dim, int64_t block_size = 16, Precision precision = Precision::kFloat32)
      : config(shape(heads, kv_heads, dim)),
        cache(config, block_size, 200, precision),
        scores{.scale = static_cast<float>(config.score_scale())} {}

  static ModelConfig shape(int64_t heads, int64_t kv_heads, int64_t dim) {
    ModelConfig config;
    config.layers = 1;
    config.heads = heads;
    config.kv_heads = kv_heads;
    config.head_dim = dim;
    return config;
  }

  at::ScalarType dtype() const { return cache.precision() == Precision::kFloat32 ? at::kFloat : at::kBFloat16; }

  // With values that the cache can hold.
  at::Tensor random(int64_t heads, int64_t tokens) const {
    return at::randn({heads, tokens, config.head_dim}, at::kFloat).to(dtype()).to(at::kFloat);
  }

  // A sequence whose keys and values are in blocks; unused slots hold NaN, so that a kernel that looks at them is found out.
  Sequence sequence(int64_t tokens) {
    Sequence s{random(config.heads, tokens), random(config.kv_heads, tokens), random(config.kv_heads, tokens), {}};
    cache.reserve(s.blocks, tokens);
    cache.precision() == Precision::kFloat32 ? fill<float>(s, tokens) : fill<Bfloat16>(s, tokens);
    return s;
  }

  template <class Element>
  void spoil(int32_t block, int64_t head) {
    Element* const keys = cache.head_block<Element>(block, 0, head);
    std::fill_n(keys, cache.block_size() * (cache.key_dim() + cache.head_dim()), kNan<Element>);
  }
  void spoil(int32_t block, int64_t head) {
    cache.precision() == Precision::kFloat32 ? spoil<float>(block, head) : spoil<Bfloat16>(block, head);
  }

  template <class Element>
  void fill(const Sequence& s, int64_t tokens) {
    constexpr int64_t kPair = std::is_same_v<Element, float> ? 1 : 2;
    const auto stored = [](float value) {
      if constexpr (kPair == 1)
        return value;
      else
        return to_bfloat16(value);
    };
    const int64_t block_size = cache.block_size(), dim = config.head_dim;
    const auto k = s.k.accessor<float, 3>(), v = s.v.accessor<float, 3>();
    for (int64_t head = 0; head < config.kv_heads; ++head) {
      for (const int32_t block : s.blocks) spoil<Element>(block, head);
      for (int64_t t = 0; t < tokens; ++t) {
        Element* const keys = cache.head_block<Element>(s.blocks[t / block_size], 0, head);
        Element* const values = keys + block_size * cache.key_dim();
        for (int64_t d = 0; d < cache.key_dim(); ++d)
          keys[(d / kPair * block_size + t % block_size) * kPair + d % kPair] = d < dim ? stored(k[head][t][d]) : Element{};
        for (int64_t d = 0; d < dim; ++d) values[t % block_size * dim + d] = stored(v[head][t][d]);
      }
    }
  }

  // The attention of the last `counts[i]` tokens of each sequence, [sum of counts, heads D].
  at::Tensor run(const std::vector<Sequence>& sequences, const std::vector<int64_t>& begins, const std::vector<int64_t>& ends,
                 InstructionSet set = best_instruction_set()) const {
    std::vector<PagedSequence> paged;
    std::vector<at::Tensor> queries;
    const int64_t padding = cache.key_dim() - config.head_dim;
    for (size_t i = 0; i < sequences.size(); ++i) {
      paged.push_back({.cached = begins[i], .new_tokens = ends[i] - begins[i], .blocks = sequences[i].blocks});
      const at::Tensor q = sequences[i].q.slice(1, begins[i], ends[i]).transpose(0, 1);
      queries.push_back(at::constant_pad_nd(q, {0, padding}).reshape({ends[i] - begins[i], -1}));
    }
    const at::Tensor all = at::cat(queries, 0).to(dtype()).contiguous();
    at::Tensor out = at::zeros({all.size(0), config.heads * config.head_dim}, all.options());
    PagedAttention attention;
    attention.begin(paged);
    attention.run(cache, 0, config.heads, scores,
                  {.queries = all.const_data_ptr(), .query_stride = all.size(1), .out = out.mutable_data_ptr()}, set);
    return out.to(at::kFloat);
  }
};

// In bfloat16 each weight is rounded, and the result once more: values are of a size of about 3.
void expect_near(const at::Tensor& ours, const at::Tensor& theirs, const Case& c, double tolerance, const char* what) {
  const bool wide = c.cache.precision() == Precision::kFloat32;
  const at::Tensor excess = (ours - theirs).abs() - (wide ? 0.0 : 3.0 / 512) - theirs.abs() * (wide ? 0.0 : 1.0 / 256);
  EXPECT_LT(excess.max().item<double>(), tolerance) << what;
}

TEST(PagedAttention, AgreesWithDenseCausalAttentionForPromptsDecodesAndGroups) {
  for (const auto& [heads, kv_heads, dim] :
       std::vector<std::array<int64_t, 3>>{{4, 4, 32}, {8, 2, 16}, {6, 3, 6}, {2, 1, 80}, {3, 1, 7}, {4, 2, 128}})
    for (const InstructionSet set : runnable_instruction_sets())
      for (const Precision precision : kPrecisions) {
        Case c(heads, kv_heads, dim, dim == 16 ? 32 : 16, precision);
        const std::vector<int64_t> lengths = {1, 15, 16, 17, 70};
        std::vector<Sequence> sequences;
        for (const int64_t length : lengths) sequences.push_back(c.sequence(length));
        const std::vector<int64_t> begins = {0, 0, 15, 3, 69};  // two prompts, a decoded token, a later chunk, a decoded token
        const at::Tensor out = c.run(sequences, begins, lengths, set);
        int64_t row = 0;
        for (size_t i = 0; i < lengths.size(); ++i) {
          const at::Tensor expected = reference::attention(sequences[i].q, sequences[i].k, sequences[i].v).slice(0, begins[i]);
          const at::Tensor ours = out.slice(0, row, row + expected.size(0));
          SCOPED_TRACE("D " + std::to_string(dim) + " sequence " + std::to_string(i));
          expect_near(ours, expected, c, 4e-6, enum_names(precision)[static_cast<size_t>(precision)].second);
          row += expected.size(0);
        }
      }
}

at::Tensor dense(const Sequence& s, const PagedScores& scores) {
  return reference::attention(s.q, s.k, s.v, {.scale = scores.scale, .softcap = scores.softcap, .window = scores.window});
}

TEST(PagedAttention, AgreesWithDenseAttentionForWindowsSoftCapsAndScales) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t window : {0, 1, 7, 16, 17, 40, 1000})
      for (const Precision precision : kPrecisions)
        for (const float softcap : {0.0f, 2.0f}) {
          Case c(6, 2, 20, window == 40 ? 32 : 16, precision);
          c.scores = {.scale = 0.7f, .softcap = softcap, .window = window};
          const Sequence s = c.sequence(75), other = c.sequence(33);
          const at::Tensor out = c.run({s, other, s}, {0, 32, 70}, {75, 33, 75}, set);
          expect_near(out.slice(0, 0, 75), dense(s, c.scores), c, 5e-6, "a whole prompt");
          expect_near(out[75], dense(other, c.scores)[32], c, 5e-6, "a decoded token");
          EXPECT_TRUE(out.slice(0, 76).equal(out.slice(0, 70, 75))) << window;  // the same tokens as chunks of 75 and of 5
        }
}

TEST(PagedAttention, BlocksBeforeTheWindowAreNotRead) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const Precision precision : kPrecisions) {
      Case c(2, 1, 24, 16, precision);
      c.scores.window = 20;
      const Sequence s = c.sequence(100);
      const at::Tensor before = c.run({s}, {90}, {100}, set);  // token 90 sees tokens from 71 on, of block 4
      for (int block = 0; block < 4; ++block) c.spoil(s.blocks[block], 0);
      EXPECT_TRUE(c.run({s}, {90}, {100}, set).equal(before));
    }
}

TEST(PagedAttention, ATokenHasTheSameBitsHoweverThePromptIsCutAndWhateverIsBesideIt) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const Precision precision : kPrecisions)
      for (const int64_t window : {0, 5, 21}) {
        Case c(8, 2, window == 0 ? 96 : 20, 16, precision);
        c.scores.window = window;
        c.scores.softcap = window == 5 ? 3.0f : 0.0f;
        const Sequence s = c.sequence(53), other = c.sequence(31);
        const at::Tensor whole = c.run({s}, {0}, {53}, set);
        for (const int64_t chunk : {1, 2, 3, 7, 16}) {
          std::vector<at::Tensor> parts;
          for (int64_t begin = 0; begin < 53; begin += chunk) {
            const int64_t end = std::min<int64_t>(53, begin + chunk);
            parts.push_back(c.run({other, s}, {begin % 30, begin}, {31, end}, set).slice(0, 31 - begin % 30));
          }
          EXPECT_TRUE(at::cat(parts, 0).equal(whole)) << chunk << " window " << window;
        }
      }
}

// Training computes a whole sample at once. [T, heads D]
at::Tensor of_whole_sample(const Sequence& s, const Case& c, InstructionSet set) {
  const auto rows = [&](const at::Tensor& x) { return x.transpose(0, 1).flatten(1).to(c.dtype()).contiguous(); };
  const at::Tensor query = rows(s.q), key = rows(s.k), value = rows(s.v), out = at::zeros_like(query);
  const ModelConfig& config = c.config;
  std::vector<float> log_sum_exp(static_cast<size_t>(query.size(0) * config.heads));
  std::vector<int32_t> scratch(static_cast<size_t>(attention_scratch_words(c.cache.precision(), query.size(0), config.head_dim)));
  for (int64_t head = 0; head < config.kv_heads; ++head) {
    attention_forward({.precision = c.cache.precision(),
                       .heads = config.heads,
                       .kv_heads = config.kv_heads,
                       .head_dim = config.head_dim,
                       .queries = query.size(0),
                       .keys = query.size(0),
                       .kv_head = head,
                       .scale = c.scores.scale,
                       .softcap = c.scores.softcap,
                       .window = c.scores.window,
                       .query = query.const_data_ptr(),
                       .key = key.const_data_ptr(),
                       .value = value.const_data_ptr()},
                      {.output = out.mutable_data_ptr(), .log_sum_exp = log_sum_exp.data()}, scratch.data(), set);
  }
  return out.to(at::kFloat);
}

TEST(PagedAttention, HasTheBitsThatTrainingComputesForAWholeSample) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const Precision precision : kPrecisions)
      for (const int64_t dim : {6, 7, 16, 20, 48, 64, 80, 128})
        for (const auto& [window, softcap] :
             std::vector<std::pair<int64_t, float>>{{0, 0.0f}, {1, 0.0f}, {21, 2.0f}, {40, 0.0f}}) {
          Case c(4, 2, dim, dim == 16 ? 32 : 16, precision);
          c.scores.window = window;
          c.scores.softcap = softcap;
          for (const int64_t length : {1, 2, 15, 16, 31, 33, 77, 130}) {
            const Sequence s = c.sequence(length);
            const at::Tensor expected = of_whole_sample(s, c, set);
            SCOPED_TRACE(std::to_string(length) + " tokens of size " + std::to_string(dim) + ", window " +
                         std::to_string(window));
            EXPECT_TRUE(c.run({s}, {0}, {length}, set).equal(expected)) << "as a prompt";
            EXPECT_TRUE(c.run({s}, {length - 1}, {length}, set)[0].equal(expected[length - 1])) << "decoded";
          }
        }
}

TEST(PagedAttention, TheNumberOfThreadsDoesNotMatter) {
  const int64_t threads = loop_threads();
  Case c(4, 4, 32);
  std::vector<Sequence> sequences;
  std::vector<int64_t> begins, ends;
  for (int64_t i = 1; i < 20; ++i) {
    sequences.push_back(c.sequence(3 * i));
    begins.push_back(2 * i);
    ends.push_back(3 * i);
  }
  set_loop_threads(1);
  const at::Tensor one = c.run(sequences, begins, ends);
  set_loop_threads(3);
  EXPECT_TRUE(c.run(sequences, begins, ends).equal(one));
  set_loop_threads(threads);
}

TEST(PagedAttention, LargeScoresDoNotOverflow) {
  Case c(1, 1, 16);
  Sequence s = c.sequence(20);
  s.q.mul_(1e4);
  const at::Tensor expected = reference::attention(s.q, s.k, s.v);
  EXPECT_LT((c.run({s}, {0}, {20}) - expected).abs().max().item<float>(), 1e-3f);
}

}  // namespace
}  // namespace sluice::models::paged_attention_test
