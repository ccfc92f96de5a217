#include "models/generation/paged_attention.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tests/models/dense_reference.h"
#include "tests/models/generation/cache_with_pool.h"
#include "tests/models/machines.h"

namespace sluice::models {
namespace {

struct Sequence {
  at::Tensor q, k, v;  // [heads, T, D], [kv_heads, T, D]
  std::vector<int32_t> blocks;
};

struct Case {
  ModelConfig config;
  CacheWithPool cache;
  PagedScores scores;

  Case(int64_t heads, int64_t kv_heads, int64_t dim, int64_t block_size = 16)
      : config(shape(heads, kv_heads, dim)),
        cache(config, block_size, 200),
        scores{.scale = static_cast<float>(config.score_scale())} {}

  static ModelConfig shape(int64_t heads, int64_t kv_heads, int64_t dim) {
    ModelConfig config;
    config.layers = 1;
    config.heads = heads;
    config.kv_heads = kv_heads;
    config.head_dim = dim;
    return config;
  }

  // A sequence whose keys and values are in blocks; unused slots hold NaN, so that a kernel that looks at them is found out.
  Sequence sequence(int64_t tokens) {
    Sequence s{at::randn({config.heads, tokens, config.head_dim}, at::kFloat),
               at::randn({config.kv_heads, tokens, config.head_dim}, at::kFloat),
               at::randn({config.kv_heads, tokens, config.head_dim}, at::kFloat),
               {}};
    cache.reserve(s.blocks, tokens);
    const int64_t block_size = cache.block_size(), dim = config.head_dim;
    for (int64_t head = 0; head < config.kv_heads; ++head) {
      for (const int32_t block : s.blocks)
        std::fill_n(cache.head_block(block, 0, head), 2 * block_size * dim, std::numeric_limits<float>::quiet_NaN());
      const auto k = s.k.accessor<float, 3>(), v = s.v.accessor<float, 3>();
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t d = 0; d < dim; ++d) {
          float* keys = cache.head_block(s.blocks[t / block_size], 0, head);
          keys[d * block_size + t % block_size] = k[head][t][d];
          keys[block_size * dim + t % block_size * dim + d] = v[head][t][d];
        }
    }
    return s;
  }

  // The attention of the last `counts[i]` tokens of each sequence, [sum of counts, heads D].
  at::Tensor run(const std::vector<Sequence>& sequences, const std::vector<int64_t>& begins, const std::vector<int64_t>& ends,
                 Machine machine = this_machine()) const {
    std::vector<PagedSequence> paged;
    std::vector<at::Tensor> queries;
    for (size_t i = 0; i < sequences.size(); ++i) {
      paged.push_back({.cached = begins[i], .new_tokens = ends[i] - begins[i], .blocks = sequences[i].blocks});
      queries.push_back(sequences[i].q.slice(1, begins[i], ends[i]).transpose(0, 1).reshape({ends[i] - begins[i], -1}));
    }
    const at::Tensor all = at::cat(queries, 0).contiguous();
    at::Tensor out = at::zeros_like(all);
    paged_attention(cache, 0, config.heads, scores, paged, all.const_data_ptr<float>(), all.size(1),
                    out.mutable_data_ptr<float>(), machine);
    return out;
  }
};

TEST(PagedAttention, AgreesWithDenseCausalAttentionForPromptsDecodesAndGroups) {
  for (const auto& [heads, kv_heads, dim] :
       std::vector<std::array<int64_t, 3>>{{4, 4, 32}, {8, 2, 16}, {6, 3, 6}, {2, 1, 80}, {4, 2, 128}})
    for (const Machine machine : machines()) {
      Case c(heads, kv_heads, dim, dim == 16 ? 32 : 16);
      const std::vector<int64_t> lengths = {1, 15, 16, 17, 70};
      std::vector<Sequence> sequences;
      for (const int64_t length : lengths) sequences.push_back(c.sequence(length));
      const std::vector<int64_t> begins = {0, 0, 15, 3, 69};  // two prompts, a decoded token, a later chunk, a decoded token
      const at::Tensor out = c.run(sequences, begins, lengths, machine);
      int64_t row = 0;
      for (size_t i = 0; i < lengths.size(); ++i) {
        const at::Tensor expected = reference::attention(sequences[i].q, sequences[i].k, sequences[i].v).slice(0, begins[i]);
        const at::Tensor ours = out.slice(0, row, row + expected.size(0));
        EXPECT_LT((ours - expected).abs().max().item<float>(), 2e-6f) << "D " << dim << " sequence " << i;
        row += expected.size(0);
      }
    }
}

at::Tensor dense(const Sequence& s, const PagedScores& scores) {
  return reference::attention(s.q, s.k, s.v, {.scale = scores.scale, .softcap = scores.softcap, .window = scores.window});
}

TEST(PagedAttention, AgreesWithDenseAttentionForWindowsSoftCapsAndScales) {
  for (const Machine machine : machines())
    for (const int64_t window : {0, 1, 7, 16, 17, 40, 1000})
      for (const float softcap : {0.0f, 2.0f}) {
        Case c(6, 2, 20, window == 40 ? 32 : 16);
        c.scores = {.scale = 0.7f, .softcap = softcap, .window = window};
        const Sequence s = c.sequence(75), other = c.sequence(33);
        const at::Tensor out = c.run({s, other, s}, {0, 32, 70}, {75, 33, 75}, machine);
        EXPECT_LT((out.slice(0, 0, 75) - dense(s, c.scores)).abs().max().item<float>(), 5e-6f) << window;
        EXPECT_LT((out[75] - dense(other, c.scores)[32]).abs().max().item<float>(), 5e-6f) << window;
        EXPECT_TRUE(out.slice(0, 76).equal(out.slice(0, 70, 75))) << window;  // the same tokens as chunks of 75 and of 5
      }
}

TEST(PagedAttention, BlocksBeforeTheWindowAreNotRead) {
  for (const Machine machine : machines()) {
    Case c(2, 1, 24);
    c.scores.window = 20;
    const Sequence s = c.sequence(100);
    const at::Tensor before = c.run({s}, {90}, {100}, machine);  // token 90 sees tokens from 71 on, of block 4
    for (int block = 0; block < 4; ++block)
      std::fill_n(c.cache.head_block(s.blocks[block], 0, 0), 2 * 16 * 24, std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(c.run({s}, {90}, {100}, machine).equal(before));
  }
}

TEST(PagedAttention, ATokenHasTheSameBitsHoweverThePromptIsCutAndWhateverIsBesideIt) {
  for (const Machine machine : machines())
    for (const int64_t window : {0, 5, 21}) {
      Case c(8, 2, 20);
      c.scores.window = window;
      c.scores.softcap = window == 5 ? 3.0f : 0.0f;
      const Sequence s = c.sequence(53), other = c.sequence(31);
      const at::Tensor whole = c.run({s}, {0}, {53}, machine);
      for (const int64_t chunk : {1, 2, 3, 7, 16}) {
        std::vector<at::Tensor> parts;
        for (int64_t begin = 0; begin < 53; begin += chunk) {
          const int64_t end = std::min<int64_t>(53, begin + chunk);
          parts.push_back(c.run({other, s}, {begin % 30, begin}, {31, end}, machine).slice(0, 31 - begin % 30));
        }
        EXPECT_TRUE(at::cat(parts, 0).equal(whole)) << chunk << " window " << window;
      }
    }
}

TEST(PagedAttention, TheNumberOfThreadsDoesNotMatter) {
  const int threads = at::get_num_threads();
  Case c(4, 4, 32);
  std::vector<Sequence> sequences;
  std::vector<int64_t> begins, ends;
  for (int64_t i = 1; i < 20; ++i) {
    sequences.push_back(c.sequence(3 * i));
    begins.push_back(2 * i);
    ends.push_back(3 * i);
  }
  at::set_num_threads(1);
  const at::Tensor one = c.run(sequences, begins, ends);
  at::set_num_threads(3);
  EXPECT_TRUE(c.run(sequences, begins, ends).equal(one));
  at::set_num_threads(threads);
}

TEST(PagedAttention, LargeScoresDoNotOverflow) {
  Case c(1, 1, 16);
  Sequence s = c.sequence(20);
  s.q.mul_(1e4);
  const at::Tensor expected = reference::attention(s.q, s.k, s.v);
  EXPECT_LT((c.run({s}, {0}, {20}) - expected).abs().max().item<float>(), 1e-3f);
}

}  // namespace
}  // namespace sluice::models
