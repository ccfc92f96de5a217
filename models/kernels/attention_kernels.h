#pragma once

#include <cstdint>

#include "models/config/precision.h"
#include "models/kernels/instruction_set.h"
#include "models/kernels/rotary.h"

namespace sluice::models {

/// One key/value head of one sample, with the G = heads / kv_heads query heads that read it: all tokens of the sample, or queries
/// of some of them and keys of some before them, of which each query sees one at least. Numbers are of `precision`, float or
/// Bfloat16; pointers are to the first row of arrays over all heads. Q queries, L keys, D the head size.
struct AttentionTask {
  Precision precision = Precision::kFloat32;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t queries = 0, keys = 0;  // Q, L
  int64_t before = 0;             // tokens from the first key to the first query
  int64_t kv_head = 0;
  float scale = 0;              // on scores
  float softcap = 0;            // c: scores become c tanh(scores / c), 0: they do not
  int64_t window = 0;           // tokens that a query sees, itself included; 0: all before it
  const void* query = nullptr;  // [Q, heads*D], rotated
  const void* key = nullptr;    // [L, kv_heads*D], rotated
  const void* value = nullptr;  // [L, kv_heads*D]
};

struct AttentionOutput {
  void* output = nullptr;        // [Q, heads*D]
  float* log_sum_exp = nullptr;  // [Q, heads]: of the scaled and capped scores of each query
};

/// The gradients are with respect to queries and keys before they were rotated, and may take the place of what they are of. Where
/// queries see keys elsewhere, too, output and log_sum_exp are those of all that they see: then it is what these keys add.
struct AttentionGradient {
  const void* output = nullptr;         // [Q, heads*D], as the forward wrote it
  const float* log_sum_exp = nullptr;   // [Q, heads], as the forward wrote it
  const void* grad_output = nullptr;    // [Q, heads*D]
  const RotaryTable* rotary = nullptr;  // of all positions; null: nothing was rotated
  int64_t position = 0;                 // of the first key in its sample
  void* grad_query = nullptr;           // [Q, heads*D]
  void* grad_key = nullptr;             // [L, kv_heads*D]
  void* grad_value = nullptr;           // [L, kv_heads*D]
};

/// Scratch memory, in 4 bytes, that a task with at most so many keys needs.
int64_t attention_scratch_words(Precision precision, int64_t keys, int64_t head_dim);

/// softmax(cap(scale Q K^T)) V with each query seeing itself and what is before it, `window` tokens at most: the time is linear
/// in the length then. Scores, softmax and sums are float32; the shares that multiply V are of the task's precision. Writes only
/// the columns of the task's own heads, so tasks may run side by side; the result does not depend on which thread ran it.
/// `set` picks the instruction set: best_instruction_set(), or a lesser one to test what runs elsewhere.
void attention_forward(const AttentionTask& task, const AttentionOutput& result, int32_t* scratch,
                       InstructionSet set = best_instruction_set());

/// The gradient of attention_forward, with the shares computed again from log_sum_exp instead of kept
/// (Dao et al. 2022, "FlashAttention", algorithm 4).
void attention_backward(const AttentionTask& task, const AttentionGradient& gradient, int32_t* scratch,
                        InstructionSet set = best_instruction_set());

}  // namespace sluice::models
