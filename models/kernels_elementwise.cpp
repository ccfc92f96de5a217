#include "models/kernels_elementwise.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "models/machine.h"
#include "models/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrainElements = 1 << 15;  // elements that a thread is worth waking for

int64_t grain_rows(int64_t size) { return kGrainElements / size + 1; }

struct TokenPlace {
  int64_t position;
  int32_t block;
};

struct RotateTask {
  const KvCache& cache;
  int64_t layer, heads;
  const TokenPlace* places;  // of every token
  const RotaryTable& rotary;
  const float* bias;
  float* qkv;
};

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels_elementwise.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels_elementwise.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels_elementwise.inc"
}  // namespace baseline

struct Kernels {
  decltype(&baseline::rms_norm_rows) rms_norm;
  decltype(&baseline::swiglu_rows) swiglu;
  decltype(&baseline::exponentials_of) exponentials;
  decltype(&baseline::rotate_tokens) rotate;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4:
      return {v4::rms_norm_rows, v4::swiglu_rows, v4::exponentials_of, v4::rotate_tokens};
    case Machine::kV3:
      return {v3::rms_norm_rows, v3::swiglu_rows, v3::exponentials_of, v3::rotate_tokens};
    case Machine::kBaseline:
      break;
  }
  return {baseline::rms_norm_rows, baseline::swiglu_rows, baseline::exponentials_of, baseline::rotate_tokens};
}

}  // namespace

void rms_norm(const float* x, const float* weight, double epsilon, int64_t rows, int64_t size, float* out) {
  const auto kernel = kernels_for(this_machine()).rms_norm;
  parallel_ranges(rows, grain_rows(size), [&](int64_t begin, int64_t end) {
    kernel(x + begin * size, weight, static_cast<float>(epsilon), end - begin, size, out + begin * size);
  });
}

void swiglu(float* gate, const float* up, int64_t stride, int64_t rows, int64_t size) {
  const auto kernel = kernels_for(this_machine()).swiglu;
  parallel_ranges(rows, grain_rows(size), [&](int64_t begin, int64_t end) {
    kernel(gate + begin * stride, up + begin * stride, stride, end - begin, size);
  });
}

void exponentials(const float* logits, int64_t size, float top, float scale, float* weights) {
  kernels_for(this_machine()).exponentials(logits, size, top, scale, weights);
}

void rotate_and_cache(const KvCache& cache, int64_t layer, int64_t heads, std::span<const PagedSequence> sequences,
                      const RotaryTable& rotary, const float* bias, float* qkv) {
  std::vector<TokenPlace> places;
  for (const PagedSequence& sequence : sequences)
    for (int64_t position = sequence.cached; position < sequence.cached + sequence.new_tokens; ++position)
      places.push_back({position, sequence.blocks[position / cache.block_size()]});
  const int64_t width = (heads + 2 * cache.kv_heads()) * cache.head_dim();
  const RotateTask task{
      .cache = cache, .layer = layer, .heads = heads, .places = places.data(), .rotary = rotary, .bias = bias, .qkv = qkv};
  const auto kernel = kernels_for(this_machine()).rotate;
  parallel_ranges(static_cast<int64_t>(places.size()), grain_rows(width),
                  [&](int64_t begin, int64_t end) { kernel(task, begin, end); });
}

}  // namespace sluice::models
