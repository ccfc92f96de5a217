#include "models/sample/kernels_elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/instruction_set.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrainElements = 1 << 14;  // elements that a thread is worth waking for
constexpr int64_t kGrainFormulas = 1 << 12;  // where each takes an exponential

int64_t grain_rows(int64_t grain, int64_t size) { return grain / size + 1; }

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/sample/kernels_elementwise.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/sample/kernels_elementwise.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/sample/kernels_elementwise.inc"
}  // namespace baseline

struct Kernels {
  decltype(&baseline::normalize_rows) normalize;
  decltype(&baseline::activate_rows) activate;
  decltype(&baseline::narrow_all) narrow;
  decltype(&baseline::soft_cap_of) soft_cap;
  decltype(&baseline::prepare_tokens) prepare;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::normalize_rows, v4::activate_rows, v4::narrow_all, v4::soft_cap_of, v4::prepare_tokens};
    case Machine::kV3:
      return {v3::normalize_rows, v3::activate_rows, v3::narrow_all, v3::soft_cap_of, v3::prepare_tokens};
    case Machine::kBaseline:
      break;
  }
  return {baseline::normalize_rows, baseline::activate_rows, baseline::narrow_all, baseline::soft_cap_of,
          baseline::prepare_tokens};
}

OperandRows from_row(OperandRows rows, int64_t row, int64_t size) {
  return {.wide = rows.wide ? rows.wide + row * size : nullptr, .narrow = rows.narrow ? rows.narrow + row * size : nullptr};
}

}  // namespace

void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, OperandRows out, Machine machine) {
  const auto kernel = kernels_for(machine).normalize;
  parallel_ranges(rows, grain_rows(kGrainElements, size), [&](int64_t begin, int64_t end) {
    kernel(norm, x + begin * size, end - begin, size, from_row(out, begin, size));
  });
}

void activate(Activation activation, const float* x, const float* up, int64_t stride, int64_t rows, int64_t size, OperandRows out,
              Machine machine) {
  const auto kernel = kernels_for(machine).activate;
  parallel_ranges(rows, grain_rows(kGrainFormulas, size), [&](int64_t begin, int64_t end) {
    kernel(activation, x + begin * stride, up ? up + begin * stride : nullptr, stride, end - begin, size,
           from_row(out, begin, size));
  });
}

void narrow(const float* x, int64_t count, Bfloat16* out, Machine machine) {
  const auto kernel = kernels_for(machine).narrow;
  parallel_ranges(count, kGrainElements, [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, out + begin); });
}

void soft_cap(float* x, int64_t count, double cap, Machine machine) {
  const auto kernel = kernels_for(machine).soft_cap;
  parallel_ranges(count, kGrainFormulas,
                  [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, static_cast<float>(cap)); });
}

void prepare_heads(const HeadArguments& arguments, Machine machine) {
  const KvCache& cache = arguments.cache;
  const int64_t width = (arguments.heads + 2 * cache.kv_heads()) * cache.head_dim();
  const auto kernel = kernels_for(machine).prepare;
  parallel_ranges(static_cast<int64_t>(arguments.tokens.size()), grain_rows(kGrainElements, width),
                  [&](int64_t begin, int64_t end) { kernel(arguments, begin, end); });
}

}  // namespace sluice::models
