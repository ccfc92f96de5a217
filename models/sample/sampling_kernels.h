#pragma once

#include <cstdint>

#include "models/kernels/instruction_set.h"

namespace sluice::models {

// Passes over one row of logits[size] for the sampler. Sums are taken in double. `set` is for tests of what runs elsewhere;
// it must not be better than best_instruction_set().

struct RowTop {
  float logit = 0;      // the largest
  bool finite = false;  // all of them are
};
RowTop top_of(const float* logits, int64_t size, InstructionSet set = best_instruction_set());

/// Consecutive weights with one partial total: a walk along a row skips whole runs.
constexpr int64_t kSamplingRun = 256;

/// totals[r] = sum over the r-th kSamplingRun weights e^((logits[i] - top) * scale) of a softmax, `top` the largest logit and
/// scale > 0. weights[size] gets each of them, where it is not null.
void soften_row(const float* logits, int64_t size, float top, float scale, float* weights, double* totals,
                InstructionSet set = best_instruction_set());

struct RowShare {
  int64_t count = 0;
  double mass = 0;
};

/// How many logits are above `threshold`, and the sum of their weights.
RowShare share_above(const float* logits, const float* weights, int64_t size, float threshold,
                     InstructionSet set = best_instruction_set());

/// The ids with low < logit <= high, in order; ids[size] has room for all. Returns how many.
int64_t ids_between(const float* logits, int64_t size, float low, float high, int32_t* ids,
                    InstructionSet set = best_instruction_set());

}  // namespace sluice::models
