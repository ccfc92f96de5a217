#include "models/generation/paged_attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kTileRows = 4;
constexpr int64_t kGrain = 8;  // head tasks that a thread is worth waking for

/// One sequence and one kv head: rows are (token, query head of the group).
struct HeadTask {
  const KvCache& cache;
  const PagedSequence& sequence;
  int64_t layer, kv_head, group;  // group: query heads that share the kv head
  int64_t block_size, head_dim, rows;
  PagedScores scores;
  const float* queries;  // of the sequence's first new token and the group's first head
  int64_t query_stride;
  float* out;
  int64_t out_stride;

  const float* keys(int64_t block) const { return cache.head_block(sequence.blocks[block], layer, kv_head); }
  const float* values(int64_t block) const { return keys(block) + block_size * head_dim; }
  const float* query(int64_t row) const { return queries + row / group * query_stride + row % group * head_dim; }
  float* output(int64_t row) const { return out + row / group * out_stride + row % group * head_dim; }
  int64_t visible(int64_t row) const { return sequence.cached + row / group + 1; }  // tokens at or before the row's own
  int64_t hidden(int64_t row) const {                                               // of those, the ones before its window
    return scores.window == 0 ? 0 : std::max<int64_t>(0, visible(row) - scores.window);
  }
};

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/generation/paged_attention.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/generation/paged_attention.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/generation/paged_attention.inc"
}  // namespace baseline

using Attend = void (*)(const HeadTask& task, float* scores, int64_t stride);

Attend kernel_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::attend;
    case Machine::kV3:
      return v3::attend;
    case Machine::kBaseline:
      break;
  }
  return baseline::attend;
}

}  // namespace

void paged_attention(const KvCache& cache, int64_t layer, int64_t heads, const PagedScores& scores,
                     std::span<const PagedSequence> sequences, const float* queries, int64_t query_stride, float* out,
                     Machine machine) {
  SLUICE_CHECK(scores.scale > 0 && scores.softcap >= 0 && scores.window >= 0, "attention scores out of range");
  const Attend attend = kernel_for(machine);
  const int64_t group = heads / cache.kv_heads(), dim = cache.head_dim(), kv_heads = cache.kv_heads();
  int64_t longest = 0;
  std::vector<int64_t> first_token;  // of each sequence
  first_token.reserve(sequences.size());
  int64_t tokens = 0;
  for (const PagedSequence& sequence : sequences) {
    longest = std::max(longest, sequence.cached + sequence.new_tokens);
    first_token.push_back(tokens);
    tokens += sequence.new_tokens;
  }
  const int64_t stride = cache.blocks_for(longest) * cache.block_size();
  parallel_ranges(static_cast<int64_t>(sequences.size()) * kv_heads, kGrain, [&](int64_t begin, int64_t end) {
    std::vector<float> weights(static_cast<size_t>(kTileRows * stride));
    for (int64_t index = begin; index < end; ++index) {
      const int64_t s = index / kv_heads, kv_head = index % kv_heads;
      const int64_t offset = kv_head * group * dim;
      attend({.cache = cache,
              .sequence = sequences[s],
              .layer = layer,
              .kv_head = kv_head,
              .group = group,
              .block_size = cache.block_size(),
              .head_dim = dim,
              .rows = sequences[s].new_tokens * group,
              .scores = scores,
              .queries = queries + first_token[s] * query_stride + offset,
              .query_stride = query_stride,
              .out = out + first_token[s] * heads * dim + offset,
              .out_stride = heads * dim},
             weights.data(), stride);
    }
  });
}

}  // namespace sluice::models
