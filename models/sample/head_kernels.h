#pragma once

#include <cstdint>
#include <span>

#include "models/config/config.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/instruction_set.h"
#include "models/kernels/rotary.h"
#include "models/kernels/row_norm.h"
#include "models/sample/kv_cache.h"

namespace sluice::models {

/// Where a token's keys and values go.
struct TokenPlace {
  int64_t position = 0;
  int32_t block = 0;  // of the cache, the one that holds the position
};

/// What follows the query, key and value projections: see prepare_heads().
struct HeadArguments {
  const KvCache& cache;
  int64_t layer = 0, heads = 0;
  std::span<const TokenPlace> tokens;   // T
  const RotaryTable* rotary = nullptr;  // null: nothing is rotated
  QkNorm qk_norm = QkNorm::kNone;
  RowNorm query_norm, key_norm;        // of [D], or of [heads D] and [kv_heads D]: see QkNorm
  float* qkv = nullptr;                // [T, (heads + 2 kv_heads) D]  queries, keys, values of a token
  Bfloat16* narrow_queries = nullptr;  // [T, heads K] with a bfloat16 cache, K its key_dim()
};

/// Normalises queries and keys, rotates their heads as rotary->at() of the token's position says, and writes keys
/// and values into the blocks of their sequences, with a bfloat16 cache rounded, and then the rounded queries too. Queries and
/// keys change in place.
void prepare_heads(const HeadArguments& arguments, InstructionSet set = best_instruction_set());

}  // namespace sluice::models
