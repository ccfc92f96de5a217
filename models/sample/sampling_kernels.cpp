#include "models/sample/sampling_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::models {
namespace {

#define SLUICE_KERNELS "models/sample/sampling_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

RowTop top_of(const float* logits, int64_t size, InstructionSet set) {
  return with_kernels(set, [&](auto kernels) { return kernels.top_of(logits, size); });
}

void soften_row(const float* logits, int64_t size, float top, float scale, float* weights, double* totals, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.softened(logits, size, top, scale, weights, totals); });
}

RowShare share_above(const float* logits, const float* weights, int64_t size, float threshold, InstructionSet set) {
  return with_kernels(set, [&](auto kernels) { return kernels.share_above(logits, weights, size, threshold); });
}

int64_t ids_between(const float* logits, int64_t size, float low, float high, int32_t* ids, InstructionSet set) {
  return with_kernels(set, [&](auto kernels) { return kernels.ids_between(logits, size, low, high, ids); });
}

}  // namespace sluice::models
