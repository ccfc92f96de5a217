#include "models/generation/kernels_elementwise.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "models/kernels/machine.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrainElements = 1 << 15;  // elements that a thread is worth waking for

int64_t grain_rows(int64_t size) { return kGrainElements / size + 1; }

struct TokenPlace {
  int64_t position;
  int32_t block;
};

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/generation/kernels_elementwise.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/generation/kernels_elementwise.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/generation/kernels_elementwise.inc"
}  // namespace baseline

struct Kernels {
  decltype(&baseline::normalize_rows) normalize;
  decltype(&baseline::activate_rows) activate;
  decltype(&baseline::soft_cap_of) soft_cap;
  decltype(&baseline::exponentials_of) exponentials;
  decltype(&baseline::prepare_tokens) prepare;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::normalize_rows, v4::activate_rows, v4::soft_cap_of, v4::exponentials_of, v4::prepare_tokens};
    case Machine::kV3:
      return {v3::normalize_rows, v3::activate_rows, v3::soft_cap_of, v3::exponentials_of, v3::prepare_tokens};
    case Machine::kBaseline:
      break;
  }
  return {baseline::normalize_rows, baseline::activate_rows, baseline::soft_cap_of, baseline::exponentials_of,
          baseline::prepare_tokens};
}

}  // namespace

void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, float* out, Machine machine) {
  const auto kernel = kernels_for(machine).normalize;
  parallel_ranges(rows, grain_rows(size),
                  [&](int64_t begin, int64_t end) { kernel(norm, x + begin * size, end - begin, size, out + begin * size); });
}

void activate(Activation activation, float* x, const float* up, int64_t stride, int64_t rows, int64_t size, Machine machine) {
  const auto kernel = kernels_for(machine).activate;
  parallel_ranges(rows, grain_rows(size), [&](int64_t begin, int64_t end) {
    kernel(activation, x + begin * stride, up ? up + begin * stride : nullptr, stride, end - begin, size);
  });
}

void soft_cap(float* x, int64_t count, double cap, Machine machine) {
  const auto kernel = kernels_for(machine).soft_cap;
  parallel_ranges(count, kGrainElements,
                  [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, static_cast<float>(cap)); });
}

void exponentials(const float* logits, int64_t size, float top, float scale, float* weights) {
  kernels_for(this_machine()).exponentials(logits, size, top, scale, weights);
}

void prepare_heads(const HeadArguments& arguments, Machine machine) {
  const KvCache& cache = arguments.cache;
  std::vector<TokenPlace> places;
  for (const PagedSequence& sequence : arguments.sequences)
    for (int64_t position = sequence.cached; position < sequence.cached + sequence.new_tokens; ++position)
      places.push_back({position, sequence.blocks[position / cache.block_size()]});
  const int64_t width = (arguments.heads + 2 * cache.kv_heads()) * cache.head_dim();
  const auto kernel = kernels_for(machine).prepare;
  parallel_ranges(static_cast<int64_t>(places.size()), grain_rows(width),
                  [&](int64_t begin, int64_t end) { kernel(arguments, places.data(), begin, end); });
}

}  // namespace sluice::models
