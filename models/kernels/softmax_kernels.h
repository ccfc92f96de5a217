#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "models/kernels/bfloat16.h"
#include "models/kernels/instruction_set.h"

namespace sluice::models {

// The softmax of a row of logits that come in parts, so that a row never exists as a whole. Single-threaded. `set` is for
// tests of what runs elsewhere; it must not be better than best_instruction_set().

/// What logits are divided by before the softmax, and how they came to be: who has capped them (row_kernels.h: soft_cap) has a
/// gradient with respect to what they were before.
struct LogitScale {
  float temperature = 1;
  float softcap = 0;  // c: the logits are capped, c tanh(logit / c); 0: they are not
};

/// What is known of a row after some of its parts: the largest scaled logit z, and the sums over them of e^(z - top) and of
/// e^(z - top) z.
struct RowSums {
  float top = -std::numeric_limits<float>::infinity();
  float sum = 0, weighted = 0;

  float log_sum_exp() const { return top + std::log(sum); }
};

/// Logits of a part: who adds up a row by parts of so many gets the same bits as everybody else who does.
constexpr int64_t kSoftmaxPart = 1024;

/// Adds a part of a row (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3).
void add_logits(const float* logits, int64_t count, const LogitScale& scale, RowSums& sums,
                InstructionSet set = best_instruction_set());

float scaled_logit(float logit, const LogitScale& scale, InstructionSet set = best_instruction_set());

/// Of a row: its log-sum-exp and entropy, and the gradients of the log-probability of its target and of its entropy.
struct RowGradient {
  float log_sum_exp = 0, entropy = 0;
  float grad_logprob = 0, grad_entropy = 0;
  int64_t target = -1;  // place in this part, or -1: in another one
};

/// out = the gradient with respect to the logits of a part; may be `logits`. `Number`: float or Bfloat16.
template <class Number>
void logit_gradient(const float* logits, int64_t count, const LogitScale& scale, const RowGradient& row, Number* out,
                    InstructionSet set = best_instruction_set());

}  // namespace sluice::models
