#include "models/kernels/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace sluice::models {
namespace {

constexpr int64_t kRows = 8;  // queries of a block
constexpr int64_t kWidest = 16;

constexpr int64_t padded(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Where the pieces of the scratch memory begin. Lp: length padded, Dp: head size padded.
struct Scratch {
  int64_t length_padded, dim_padded, width;
  float *key_rows, *key_panels;  // [Lp,Dp], [Lp/lanes,Dp,lanes]: a panel is one key a lane, side by side
  float *value_rows, *value_panels;
  float *grad_key, *grad_value;       // [Lp,Dp]
  float *query, *grad_output, *sums;  // [kRows,Dp]
  float *scores, *grad_scores;        // [kRows,width]

  Scratch(float* memory, int64_t length, int64_t head_dim, int64_t lanes)
      : length_padded(padded(length, lanes)),
        dim_padded(padded(head_dim, lanes)),
        width(length_padded + lanes) {  // a few more, so that rows of a power of two do not share cache sets
    const auto take = [&](int64_t floats) { return memory += floats, memory - floats; };
    const int64_t all = length_padded * dim_padded, block = kRows * dim_padded;
    key_rows = take(all), key_panels = take(all), value_rows = take(all), value_panels = take(all);
    grad_key = take(all), grad_value = take(all);
    query = take(block), grad_output = take(block), sums = take(block);
    scores = take(kRows * width), grad_scores = take(kRows * width);
  }
};

// A block of queries of one head: rows [first, first + rows) of the sample, and the keys that any of them sees.
struct Block {
  int64_t first, rows;
  int64_t begin;  // of the keys, in whole registers
  int64_t keys;   // from `begin` to the last that the last query sees
  int64_t end;    // `keys` in whole registers

  // Keys that query `row` sees, counted from `begin`.
  int64_t visible_begin(int64_t row, int64_t window) const {
    return window == 0 ? 0 : std::max<int64_t>(0, first + row + 1 - window - begin);
  }
  int64_t visible_end(int64_t row) const { return first + row + 1 - begin; }
};

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/attention_kernels.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/attention_kernels.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/attention_kernels.inc"
}  // namespace baseline

}  // namespace

int64_t attention_scratch_floats(int64_t length, int64_t head_dim) {
  const int64_t length_padded = padded(length, kWidest), dim_padded = padded(head_dim, kWidest);
  return 6 * length_padded * dim_padded + 3 * kRows * dim_padded + 2 * kRows * (length_padded + kWidest);
}

void attention_forward(const AttentionTask& task, const AttentionOutput& result, float* scratch, Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::forward(task, result, scratch);
    case Machine::kV3:
      return v3::forward(task, result, scratch);
    case Machine::kBaseline:
      return baseline::forward(task, result, scratch);
  }
}

void attention_backward(const AttentionTask& task, const AttentionGradient& gradient, float* scratch, Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return v4::backward(task, gradient, scratch);
    case Machine::kV3:
      return v3::backward(task, gradient, scratch);
    case Machine::kBaseline:
      return baseline::backward(task, gradient, scratch);
  }
}

}  // namespace sluice::models
