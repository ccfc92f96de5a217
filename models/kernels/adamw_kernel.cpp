#include "models/kernels/adamw_kernel.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace sluice::models {
namespace {

#define SLUICE_KERNELS "models/kernels/adamw_kernel.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

void adamw_step(const AdamWRange& range, const AdamWFactors& factors, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.step(range, factors); });
}

double sum_of_squares(const float* values, int64_t count, InstructionSet set) {
  return with_kernels(set, [&](auto kernels) { return kernels.squares(values, count); });
}

}  // namespace sluice::models
