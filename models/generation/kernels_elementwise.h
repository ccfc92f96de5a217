#pragma once

#include <cstdint>
#include <span>

#include "models/config/config.h"
#include "models/generation/kv_cache.h"
#include "models/kernels/machine.h"
#include "models/generation/paged_attention.h"
#include "models/rotary.h"
#include "models/kernels/row_norm.h"

namespace sluice::models {

// Row-wise kernels of generation, float32, split over ATen's threads. An element's bits depend on nothing but its row. `machine`
// is for tests of what runs elsewhere; it must not be better than this_machine().

/// out[row, :] = norm of x[row, :]. x, out [rows, size]; out may be x.
void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, float* out, Machine machine = this_machine());

/// x[row, :] = activation(x[row, :]) * up[row, :] (Shazeer 2020, "GLU variants"), or without `up` where that is null. x, up
/// [rows, size], both with the row stride `stride`.
void activate(Activation activation, float* x, const float* up, int64_t stride, int64_t rows, int64_t size,
              Machine machine = this_machine());

/// x[i] = cap tanh(x[i] / cap), 0 <= i < count; cap > 0.
void soft_cap(float* x, int64_t count, double cap, Machine machine = this_machine());

/// weights[i] = e^((logits[i] - top) * scale), 0 <= i < size, for a softmax: `top` is the largest logit and scale > 0.
void exponentials(const float* logits, int64_t size, float top, float scale, float* weights);

/// What follows the query, key and value projections: see prepare_heads().
struct HeadArguments {
  const KvCache& cache;
  int64_t layer = 0, heads = 0;
  std::span<const PagedSequence> sequences;
  const RotaryTable* rotary = nullptr;  // null: nothing turns
  QkNorm qk_norm = QkNorm::kNone;
  RowNorm query_norm, key_norm;  // of [D], or of [heads D] and [kv_heads D]: see QkNorm
  float* qkv = nullptr;          // [T, (heads + 2 kv_heads) D]  queries, keys, values of a token
};

/// Normalises queries and keys, rotates the first rotary->dims() of each of their heads by the token's position, and writes keys
/// and values into the blocks of their sequences. Queries and keys change in place.
void prepare_heads(const HeadArguments& arguments, Machine machine = this_machine());

}  // namespace sluice::models
