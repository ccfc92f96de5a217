#include "models/kernels/softmax_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace sluice::models {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/softmax_kernels.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/softmax_kernels.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/softmax_kernels.inc"
}  // namespace baseline

}  // namespace

void add_logits(const float* logits, int64_t count, const LogitScale& scale, RowSums& sums, Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::add_logits(logits, count, scale, sums);
    case Machine::kV3:
      return v3::add_logits(logits, count, scale, sums);
    case Machine::kBaseline:
      return baseline::add_logits(logits, count, scale, sums);
  }
}

float scaled_logit(float logit, const LogitScale& scale, Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::scaled_logit(logit, scale);
    case Machine::kV3:
      return v3::scaled_logit(logit, scale);
    case Machine::kBaseline:
      break;
  }
  return baseline::scaled_logit(logit, scale);
}

template <class Number>
void logit_gradient(const float* logits, int64_t count, const LogitScale& scale, const RowGradient& row, Number* out,
                    Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::logit_gradient(logits, count, scale, row, out);
    case Machine::kV3:
      return v3::logit_gradient(logits, count, scale, row, out);
    case Machine::kBaseline:
      return baseline::logit_gradient(logits, count, scale, row, out);
  }
}

template void logit_gradient(const float*, int64_t, const LogitScale&, const RowGradient&, float*, Machine);
template void logit_gradient(const float*, int64_t, const LogitScale&, const RowGradient&, Bfloat16*, Machine);

}  // namespace sluice::models
