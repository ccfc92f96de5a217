#pragma once

#include <cstdint>

#include "models/kernels/machine.h"
#include "models/rotary.h"

namespace sluice::models {

/// One key/value head of one sample, with the G = heads / kv_heads query heads that read it. Pointers are to the sample's first
/// row of arrays over all heads; L is the sample's length, D the head size.
struct AttentionTask {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t length = 0;  // L
  int64_t kv_head = 0;
  float scale = 0;                      // on scores
  float softcap = 0;                    // c: scores become c tanh(scores / c), 0: they do not
  int64_t window = 0;                   // tokens that a query sees, itself included; 0: all before it
  const RotaryTable* rotary = nullptr;  // at least L positions; its first dims() of each head turn
  const float* query = nullptr;         // [L, heads*D], not yet rotated
  const float* key = nullptr;           // [L, kv_heads*D], not yet rotated
  const float* value = nullptr;         // [L, kv_heads*D]
};

struct AttentionOutput {
  float* output = nullptr;       // [L, heads*D]
  float* log_sum_exp = nullptr;  // [L, heads]: of the scaled and capped scores of each query
};

struct AttentionGradient {
  const float* output = nullptr;       // [L, heads*D], as the forward wrote it
  const float* log_sum_exp = nullptr;  // [L, heads], as the forward wrote it
  const float* grad_output = nullptr;  // [L, heads*D]
  float* grad_query = nullptr;         // [L, heads*D]
  float* grad_key = nullptr;           // [L, kv_heads*D]
  float* grad_value = nullptr;         // [L, kv_heads*D]
};

/// Floats of scratch memory that a task over a sample of at most `length` tokens needs.
int64_t attention_scratch_floats(int64_t length, int64_t head_dim);

/// Rotates queries and keys, then softmax(cap(scale Q K^T)) V with each query seeing itself and what is before it, `window`
/// tokens at most: the time is linear in the length then. Writes only the columns of the task's own heads, so tasks may run side
/// by side; the result does not depend on which thread ran it. `machine` picks the instruction set: this_machine(), or a lesser
/// one to test what runs elsewhere.
void attention_forward(const AttentionTask& task, const AttentionOutput& result, float* scratch,
                       Machine machine = this_machine());

/// The gradient of attention_forward, with the probabilities computed again from log_sum_exp instead of kept
/// (Dao et al. 2022, "FlashAttention", algorithm 4).
void attention_backward(const AttentionTask& task, const AttentionGradient& gradient, float* scratch,
                        Machine machine = this_machine());

}  // namespace sluice::models
