#include "models/kernels/softmax_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace sluice::models {
namespace {

#define SLUICE_KERNELS "models/kernels/softmax_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

void add_logits(const float* logits, int64_t count, const LogitScale& scale, RowSums& sums, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.add_logits(logits, count, scale, sums); });
}

float scaled_logit(float logit, const LogitScale& scale, InstructionSet set) {
  return with_kernels(set, [&](auto kernels) { return kernels.scaled_logit(logit, scale); });
}

template <class Number>
void logit_gradient(const float* logits, int64_t count, const LogitScale& scale, const RowGradient& row, Number* out,
                    InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.logit_gradient(logits, count, scale, row, out); });
}

template void logit_gradient(const float*, int64_t, const LogitScale&, const RowGradient&, float*, InstructionSet);
template void logit_gradient(const float*, int64_t, const LogitScale&, const RowGradient&, Bfloat16*, InstructionSet);

}  // namespace sluice::models
