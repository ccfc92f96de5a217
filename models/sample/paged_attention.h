#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/kernels/instruction_set.h"
#include "models/memory/grown_buffer.h"
#include "models/sample/kv_cache.h"

namespace sluice::models {

/// What one sequence brings to a step: `new_tokens` >= 1 tokens at the positions [cached, cached + new_tokens). A prompt (or a
/// chunk of one) and a decoded token differ only in the count.
struct PagedSequence {
  int64_t cached = 0;  // tokens whose keys and values are in the blocks before the step
  int64_t new_tokens = 0;
  std::span<const int32_t> blocks;  // room for cached + new_tokens tokens
};

/// How queries and keys become weights.
struct PagedScores {
  float scale = 1;     // of a query times a key; above 0
  float softcap = 0;   // c: a scaled score s becomes c tanh(s / c); 0: it does not
  int64_t window = 0;  // the last tokens that a token sees, itself included; 0: all
};

/// Rows in the cache's precision, float or Bfloat16.
struct PagedRows {
  const void* queries = nullptr;  // [T, heads K] rotated; T: all new tokens, sequence by sequence; K: the cache's key_dim()
  int64_t query_stride = 0;       // elements from row to row
  void* out = nullptr;            // [T, heads D], contiguous
};

/// Causal grouped-query attention of the new tokens of each sequence over what that sequence has in its blocks, the new tokens'
/// own keys and values included (they must have been written). Blocks that lie wholly before a token's window are not read.
/// AttentionScores, softmax and sums are float32; with a bfloat16 cache the result is rounded once.
///
/// The result of a token depends on nothing but its query and its sequence's keys and values: it is bit-identical whatever else
/// is in the step and however its prompt was cut into chunks. A score is one chain of multiply-adds over the head's elements (in
/// bfloat16 of sums of two products); an output is the sum of two chains over the tokens, of even and of odd positions.
///
/// Owns the division of the work and scratch memory, which grow to the largest step; allocates nothing after that. Not
/// thread-safe.
class PagedAttention {
 public:
  /// The sequences of the calls to come. Their blocks must stay valid.
  void begin(std::span<const PagedSequence> sequences);

  /// For one layer of `cache`. Split over ATen's threads by the tokens that are looked at. `set` is for tests of what runs
  /// elsewhere; it must not be better than best_instruction_set().
  void run(const KvCache& cache, int64_t layer, int64_t heads, const PagedScores& scores, const PagedRows& rows,
           InstructionSet set = best_instruction_set());

 private:
  struct Part {  // rows of one sequence for every kv head
    int64_t sequence, first_row, rows;
  };

  void divide(const KvCache& cache, int64_t heads, int64_t window);

  std::span<const PagedSequence> sequences_;
  std::vector<int64_t> first_tokens_;  // of each sequence, in the rows
  std::vector<Part> parts_;
  std::vector<int64_t> costs_;  // of all parts before each, and of all
  GrownBuffer<float> scores_;
};

}  // namespace sluice::models
