#pragma once

#include <cstdint>
#include <span>

#include "models/kv_cache.h"
#include "models/paged_attention.h"
#include "models/rotary.h"

namespace sluice::models {

/// out[row, :] = x[row, :] / sqrt(mean(x[row, :]^2) + epsilon) * weight (Zhang and Sennrich 2019). x, out [rows, size]; weight
/// [size].
void rms_norm(const float* x, const float* weight, double epsilon, int64_t rows, int64_t size, float* out);

/// gate[row, :] = silu(gate[row, :]) * up[row, :] (Shazeer 2020, "GLU variants"), in place. gate, up [rows, size], both with the
/// row stride `stride`; a row's result does not depend on the other rows.
void swiglu(float* gate, const float* up, int64_t stride, int64_t rows, int64_t size);

/// weights[i] = e^((logits[i] - top) * scale), 0 <= i < size, for a softmax: `top` is the largest logit and scale > 0.
void exponentials(const float* logits, int64_t size, float top, float scale, float* weights);

/// What follows the query, key and value projections: adds the biases, rotates queries and keys by their positions, and writes
/// keys and values into the blocks of their sequences.
///
/// qkv  [T, (heads + 2 kv_heads) D]  queries, keys, values of a token; the queries are rotated in place
/// bias [(heads + 2 kv_heads) D]     or null
void rotate_and_cache(const KvCache& cache, int64_t layer, int64_t heads, std::span<const PagedSequence> sequences,
                      const RotaryTable& rotary, const float* bias, float* qkv);

}  // namespace sluice::models
