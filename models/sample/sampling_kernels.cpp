#include "models/sample/sampling_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::models {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/sample/sampling_kernels.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/sample/sampling_kernels.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/sample/sampling_kernels.inc"
}  // namespace baseline

struct Kernels {
  decltype(&baseline::top_of_row) top_of;
  decltype(&baseline::soften) soften;
  decltype(&baseline::above) above;
  decltype(&baseline::between) between;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::top_of_row, v4::soften, v4::above, v4::between};
    case Machine::kV3:
      return {v3::top_of_row, v3::soften, v3::above, v3::between};
    case Machine::kBaseline:
      break;
  }
  return {baseline::top_of_row, baseline::soften, baseline::above, baseline::between};
}

}  // namespace

RowTop top_of(const float* logits, int64_t size, Machine machine) { return kernels_for(machine).top_of(logits, size); }

void soften_row(const float* logits, int64_t size, float top, float scale, float* weights, double* totals, Machine machine) {
  kernels_for(machine).soften(logits, size, top, scale, weights, totals);
}

RowShare share_above(const float* logits, const float* weights, int64_t size, float threshold, Machine machine) {
  return kernels_for(machine).above(logits, weights, size, threshold);
}

int64_t ids_between(const float* logits, int64_t size, float low, float high, int32_t* ids, Machine machine) {
  return kernels_for(machine).between(logits, size, low, high, ids);
}

}  // namespace sluice::models
