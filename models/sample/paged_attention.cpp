#include "models/sample/paged_attention.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kMostTileRows = 8;
constexpr int64_t kPartTokens = 32;       // of a prompt that a thread takes at a time
constexpr int64_t kThreadWork = 1 << 15;  // multiply-adds that a thread is worth waking for

/// One sequence and one kv head: rows are (token, query head of the group). `Element` is what the cache stores.
template <class Element>
struct HeadTask {
  const KvCache& cache;
  const PagedSequence& sequence;
  int64_t layer, kv_head, group;  // group: query heads that share the kv head
  int64_t block_size, head_dim, key_dim;
  int64_t first_row, rows;
  PagedScores scores;
  const Element* queries;  // of the sequence's first new token and the group's first head
  int64_t query_stride;
  Element* out;
  int64_t out_stride;
  int64_t ahead;              // elements from a head's block to what is read after it, or 0: fetched while the block is worked on
  const PagedSequence* next;  // read after this task, where that is not after its own blocks

  const Element* keys(int64_t block) const { return cache.head_block<Element>(sequence.blocks[block], layer, kv_head); }
  const Element* values(int64_t block) const { return keys(block) + block_size * key_dim; }
  const Element* query(int64_t row) const { return queries + row / group * query_stride + row % group * key_dim; }
  Element* output(int64_t row) const { return out + row / group * out_stride + row % group * head_dim; }
  int64_t visible(int64_t row) const { return sequence.cached + row / group + 1; }  // tokens at or before the row's own
  int64_t hidden(int64_t row) const {                                               // of those, the ones before its window
    return scores.window == 0 ? 0 : std::max<int64_t>(0, visible(row) - scores.window);
  }
};

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/sample/paged_attention.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

void PagedAttention::begin(std::span<const PagedSequence> sequences) {
  sequences_ = sequences;
  first_tokens_.clear();
  int64_t tokens = 0;
  for (const PagedSequence& sequence : sequences) {
    first_tokens_.push_back(tokens);
    tokens += sequence.new_tokens;
  }
}

// Parts of a head's work, each of few enough rows that threads can share a long prompt.
void PagedAttention::divide(const KvCache& cache, int64_t heads, int64_t window) {
  const int64_t group = heads / cache.kv_heads();
  parts_.clear();
  costs_.assign(1, 0);
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const PagedSequence& sequence = sequences_[s];
    for (int64_t token = 0; token < sequence.new_tokens; token += kPartTokens) {
      const int64_t count = std::min(kPartTokens, sequence.new_tokens - token);
      const int64_t seen = sequence.cached + token + count;
      const int64_t looked_at = count * (window == 0 ? seen : std::min(seen, window));
      parts_.push_back({.sequence = static_cast<int64_t>(s), .first_row = token * group, .rows = count * group});
      costs_.push_back(costs_.back() + looked_at * group * cache.head_dim());
    }
  }
}

namespace {

template <class Element>
HeadTask<Element> task_of(const KvCache& cache, int64_t layer, int64_t heads, const PagedScores& scores, const PagedRows& rows,
                          const PagedSequence& sequence, const PagedSequence* next, int64_t first_token, int64_t kv_head) {
  const int64_t group = heads / cache.kv_heads(), head = kv_head * group;
  const bool last_head = kv_head + 1 == cache.kv_heads();
  return {.cache = cache,
          .sequence = sequence,
          .layer = layer,
          .kv_head = kv_head,
          .group = group,
          .block_size = cache.block_size(),
          .head_dim = cache.head_dim(),
          .key_dim = cache.key_dim(),
          .first_row = 0,
          .rows = 0,
          .scores = scores,
          .queries = static_cast<const Element*>(rows.queries) + first_token * rows.query_stride + head * cache.key_dim(),
          .query_stride = rows.query_stride,
          .out = static_cast<Element*>(rows.out) + (first_token * heads + head) * cache.head_dim(),
          .out_stride = heads * cache.head_dim(),
          .ahead = last_head ? 0 : cache.block_size() * (cache.key_dim() + cache.head_dim()),
          .next = last_head ? next : nullptr};
}

}  // namespace

// A unit of work is a part for one kv head, numbered part by part; its place on the scale of costs is that of the part and the
// head's share of it. Each of as many runs as there are threads takes the units that begin in its share of the scale.
void PagedAttention::run(const KvCache& cache, int64_t layer, int64_t heads, const PagedScores& scores, const PagedRows& rows,
                         InstructionSet set) {
  SLUICE_CHECK(scores.scale > 0 && scores.softcap >= 0 && scores.window >= 0, "attention scores out of range");
  divide(cache, heads, scores.window);
  int64_t longest = 0;
  for (const PagedSequence& sequence : sequences_) longest = std::max(longest, sequence.cached + sequence.new_tokens);
  const int64_t stride = cache.blocks_for(longest) * cache.block_size(), kv_heads = cache.kv_heads();
  const int64_t work = costs_.back() * kv_heads;
  const int64_t runs = std::clamp<int64_t>(work / kThreadWork, 1, loop_threads());
  float* const scratch = scores_.at_least(runs * kMostTileRows * stride);

  const auto run_units = [&]<class Element>(void (*attend)(const HeadTask<Element>&, float*, int64_t), int64_t run) {
    const int64_t begin = work / runs * run, end = run + 1 == runs ? work : work / runs * (run + 1);
    auto part = std::upper_bound(costs_.begin(), costs_.end(), begin / kv_heads) - costs_.begin() - 1;
    for (; part < static_cast<int64_t>(parts_.size()) && costs_[part] * kv_heads < end; ++part) {
      const Part& at = parts_[part];
      for (int64_t head = 0; head < kv_heads; ++head) {
        const int64_t place = costs_[part] * kv_heads + (costs_[part + 1] - costs_[part]) * head;
        if (place < begin || place >= end) continue;
        const bool last = static_cast<size_t>(part) + 1 == parts_.size();
        auto task = task_of<Element>(cache, layer, heads, scores, rows, sequences_[at.sequence],
                                     last ? nullptr : &sequences_[parts_[part + 1].sequence], first_tokens_[at.sequence], head);
        task.first_row = at.first_row;
        task.rows = at.rows;
        attend(task, scratch + run * kMostTileRows * stride, stride);
      }
    }
  };
  parallel_ranges(runs, 1, [&](int64_t first, int64_t last) {
    for (int64_t run = first; run < last; ++run) {
      if (cache.precision() == Precision::kFloat32) {
        run_units(with_kernels(set, [](auto kernels) { return kernels.of_floats; }), run);
      } else {
        run_units(with_kernels(set, [](auto kernels) { return kernels.of_bfloat16; }), run);
      }
    }
  });
}

}  // namespace sluice::models
