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

// Row-wise kernels of generation, computed in float32, split over ATen's threads. An element's bits depend on nothing but its
// row. `machine` is for tests of what runs elsewhere; it must not be better than this_machine().

/// Where a kernel leaves rows that the next product reads: one of the two, in the precision of the product. Rounded once.
struct OperandRows {
  float* wide = nullptr;
  Bfloat16* narrow = nullptr;

  const void* data() const { return wide ? static_cast<const void*>(wide) : narrow; }
};

/// out[row, :] = norm of x[row, :]. x, out [rows, size]; out may be x.
void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, OperandRows out,
               Machine machine = this_machine());

/// out[row, :] = activation(x[row, :]) * up[row, :] (Shazeer 2020, "GLU variants"), or without `up` where that is null. x, up
/// [rows, size], both with the row stride `stride`; out [rows, size], contiguous.
void activate(Activation activation, const float* x, const float* up, int64_t stride, int64_t rows, int64_t size, OperandRows out,
              Machine machine = this_machine());

/// out[i] = x[i], 0 <= i < count.
void narrow(const float* x, int64_t count, Bfloat16* out, Machine machine = this_machine());

/// x[i] = cap tanh(x[i] / cap), 0 <= i < count; cap > 0.
void soft_cap(float* x, int64_t count, double cap, Machine machine = this_machine());

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
  const RotaryTable* rotary = nullptr;  // null: nothing turns
  QkNorm qk_norm = QkNorm::kNone;
  RowNorm query_norm, key_norm;        // of [D], or of [heads D] and [kv_heads D]: see QkNorm
  float* qkv = nullptr;                // [T, (heads + 2 kv_heads) D]  queries, keys, values of a token
  Bfloat16* narrow_queries = nullptr;  // [T, heads K] with a bfloat16 cache, K its key_dim()
};

/// Normalises queries and keys, rotates the first rotary->dims() of each of their heads by the token's position, and writes keys
/// and values into the blocks of their sequences, with a bfloat16 cache rounded, and then the rounded queries too. Queries and
/// keys change in place.
void prepare_heads(const HeadArguments& arguments, Machine machine = this_machine());

}  // namespace sluice::models
