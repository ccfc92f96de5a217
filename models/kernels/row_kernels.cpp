#include "models/kernels/row_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrainElements = 1 << 14;  // elements that a thread is worth waking for
constexpr int64_t kGrainFormulas = 1 << 12;  // where each takes an exponential

int64_t grain_rows(int64_t grain, int64_t size) { return grain / size + 1; }

#define SLUICE_KERNELS "models/kernels/row_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

OperandRows from_row(OperandRows rows, int64_t row, int64_t size) {
  return {.wide = rows.wide ? rows.wide + row * size : nullptr, .narrow = rows.narrow ? rows.narrow + row * size : nullptr};
}

}  // namespace

void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, OperandRows out, InstructionSet set) {
  const auto kernel = with_kernels(set, [](auto kernels) { return kernels.normalize; });
  parallel_ranges(rows, grain_rows(kGrainElements, size), [&](int64_t begin, int64_t end) {
    kernel(norm, x + begin * size, end - begin, size, from_row(out, begin, size));
  });
}

void activate(Activation activation, const float* x, const float* up, int64_t stride, int64_t rows, int64_t size, OperandRows out,
              InstructionSet set) {
  const auto kernel = with_kernels(set, [](auto kernels) { return kernels.activate; });
  parallel_ranges(rows, grain_rows(kGrainFormulas, size), [&](int64_t begin, int64_t end) {
    kernel(activation, x + begin * stride, up ? up + begin * stride : nullptr, stride, end - begin, size,
           from_row(out, begin, size));
  });
}

void narrow(const float* x, int64_t count, Bfloat16* out, InstructionSet set) {
  const auto kernel = with_kernels(set, [](auto kernels) { return kernels.narrow; });
  parallel_ranges(count, kGrainElements, [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, out + begin); });
}

void soft_cap(float* x, int64_t count, double cap, InstructionSet set) {
  const auto kernel = with_kernels(set, [](auto kernels) { return kernels.soft_cap; });
  parallel_ranges(count, kGrainFormulas,
                  [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, static_cast<float>(cap)); });
}

}  // namespace sluice::models
