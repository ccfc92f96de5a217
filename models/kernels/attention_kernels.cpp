#include "models/kernels/attention_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "models/kernels/bfloat16.h"

namespace sluice::models {
namespace {

constexpr int64_t kWidest = 16;  // lanes

constexpr int64_t padded(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

// Sizes of a task on a machine with so many lanes, for numbers of which so many make a word.
struct AttentionShape {
  int64_t lanes, numbers;
  int64_t keys;     // in whole squares
  int64_t columns;  // of a head, in whole squares of words
  int64_t words;    // of a head's row
  int64_t blocks;   // of a head's row, one column a lane

  AttentionShape(int64_t keys_of_task, int64_t head_dim, int64_t lanes_of_machine, int64_t numbers_of_word)
      : lanes(lanes_of_machine),
        numbers(numbers_of_word),
        keys(padded(keys_of_task, lanes)),
        columns(padded(head_dim, lanes * numbers)),
        words((head_dim + numbers - 1) / numbers),
        blocks((head_dim + lanes - 1) / lanes) {}

  int64_t along(int64_t rows) const { return rows * columns / numbers; }  // words of panels, see the kernels
  int64_t across(int64_t rows) const { return blocks * lanes * rows / numbers; }
};

// Where the pieces of the scratch memory begin: panels of all keys and values, and what a block of queries needs.
struct Scratch {
  int32_t *keys_along, *keys_across, *values_along, *values_across;
  float *grad_keys, *grad_values;  // [keys, blocks * lanes]
  int32_t *query_along, *query_across, *grad_along, *grad_across;
  int32_t* rows;    // [lanes, columns] numbers
  float* scores;    // [keys, lanes]
  int32_t* shares;  // [keys / numbers, lanes]
  float* out;       // [lanes, blocks * lanes]
  int32_t* end;

  Scratch(int32_t* memory, const AttentionShape& s) {
    const auto take = [&](int64_t words) { return memory += padded(words, kWidest), memory - padded(words, kWidest); };
    const auto floats = [&](int64_t count) { return reinterpret_cast<float*>(take(count)); };
    const int64_t row = s.blocks * s.lanes;
    keys_along = take(s.along(s.keys)), keys_across = take(s.across(s.keys));
    values_along = take(s.along(s.keys)), values_across = take(s.across(s.keys));
    grad_keys = floats(s.keys * row), grad_values = floats(s.keys * row);
    query_along = take(s.along(s.lanes)), query_across = take(s.across(s.lanes));
    grad_along = take(s.along(s.lanes)), grad_across = take(s.across(s.lanes));
    rows = take(s.lanes * s.columns / s.numbers);
    scores = floats(s.keys * s.lanes), shares = take(s.keys * s.lanes / s.numbers);
    out = floats(s.lanes * row);
    end = memory;
  }
};

// What is aligned to a cache line is read in half the time.
int32_t* aligned(int32_t* memory) {
  constexpr uintptr_t kLine = 64;
  return reinterpret_cast<int32_t*>((reinterpret_cast<uintptr_t>(memory) + kLine - 1) / kLine * kLine);
}

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/kernels/attention_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

int64_t attention_scratch_words(Precision precision, int64_t keys, int64_t head_dim) {
  const AttentionShape widest(keys, head_dim, kWidest, precision == Precision::kFloat32 ? 1 : 2);
  return Scratch(nullptr, widest).end - static_cast<int32_t*>(nullptr) + kWidest;
}

void attention_forward(const AttentionTask& task, const AttentionOutput& result, int32_t* scratch, InstructionSet set) {
  scratch = aligned(scratch);
  with_kernels(set, [&](auto kernels) { kernels.forward(task, result, scratch); });
}

void attention_backward(const AttentionTask& task, const AttentionGradient& gradient, int32_t* scratch, InstructionSet set) {
  scratch = aligned(scratch);
  with_kernels(set, [&](auto kernels) { kernels.backward(task, gradient, scratch); });
}

}  // namespace sluice::models
