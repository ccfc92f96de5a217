#include "models/kernels/adamw_kernel.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace sluice::models {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/adamw_kernel.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/adamw_kernel.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/adamw_kernel.inc"
}  // namespace baseline

struct Kernels {
  decltype(&baseline::adamw_step) adamw_step;
  decltype(&baseline::sum_of_squares) sum_of_squares;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::adamw_step, v4::sum_of_squares};
    case Machine::kV3:
      return {v3::adamw_step, v3::sum_of_squares};
    case Machine::kBaseline:
      break;
  }
  return {baseline::adamw_step, baseline::sum_of_squares};
}

}  // namespace

void adamw_step(const AdamWRange& range, const AdamWFactors& factors, Machine machine) {
  kernels_for(machine).adamw_step(range, factors);
}

double sum_of_squares(const float* values, int64_t count, Machine machine) {
  return kernels_for(machine).sum_of_squares(values, count);
}

}  // namespace sluice::models
