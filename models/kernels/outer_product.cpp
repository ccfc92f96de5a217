#include "models/kernels/outer_product.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "models/kernels/bfloat16.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kWidth = 32;      // inputs of a panel
constexpr int64_t kGradWords = 48;  // outputs whose gradients are packed at once: whole tiles of every machine, whole cache lines
constexpr int64_t kWordBlock = 256;   // words of rows of a panel: 32 KB, the first-level cache
constexpr int64_t kInputBlock = 512;  // inputs whose panels are packed together: 512 KB, half of the second-level cache
constexpr int64_t kMinOutputs = 24;   // packing the inputs again on another thread costs more than fewer outputs gain

/// Packed rows, as words: a float32, or two bfloat16 of two rows.
class Scratch {
 public:
  static constexpr int64_t kPanelWords = kWordBlock * kWidth;
  static constexpr int64_t kWords = kInputBlock / kWidth * kPanelWords + kWordBlock * kGradWords;
  static constexpr size_t kAlignment = 64;  // bytes: vectors that cross a cache line cost twice

  Scratch() : words_(static_cast<int32_t*>(::operator new (kWords * sizeof(int32_t), std::align_val_t{kAlignment}))) {}
  ~Scratch() { ::operator delete (words_, std::align_val_t{kAlignment}); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  int32_t* panel(int64_t index) const { return words_ + index * kPanelWords; }
  int32_t* grad() const { return words_ + kInputBlock / kWidth * kPanelWords; }

 private:
  int32_t* words_;
};

// Kept: the system would clear its pages each time.
const Scratch& scratch_of_thread() {
  static thread_local const Scratch scratch;
  return scratch;
}

struct Kernels {
  void (*of_floats)(const OuterProductArguments& arguments, int64_t begin, int64_t end);  // outputs [begin, end)
  void (*of_bfloat16)(const OuterProductArguments& arguments, int64_t begin, int64_t end);
};

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16")
#define SLUICE_DOTS_BFLOAT16
namespace v4_bfloat16 {
constexpr int kLanes = 16;
#include "models/kernels/outer_product.inc"
}  // namespace v4_bfloat16
#undef SLUICE_DOTS_BFLOAT16
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/outer_product.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/outer_product.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/outer_product.inc"
}  // namespace baseline

const Kernels& kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
      return v4_bfloat16::kKernels;
    case Machine::kV4:
      return v4::kKernels;
    case Machine::kV3:
      return v3::kKernels;
    case Machine::kBaseline:
      break;
  }
  return baseline::kKernels;
}

}  // namespace

int64_t outer_product_scratch_bytes() { return Scratch::kWords * static_cast<int64_t>(sizeof(int32_t)); }

void add_outer_product(const OuterProductArguments& a, Machine machine) {
  const Kernels& kernels = kernels_for(machine);
  const auto kernel = a.precision == Precision::kFloat32 ? kernels.of_floats : kernels.of_bfloat16;
  constexpr int64_t kTile = 12;  // a thread's outputs are whole tiles
  const int64_t tiles = (a.outputs + kTile - 1) / kTile;
  parallel_ranges(tiles, kMinOutputs / kTile,
                  [&](int64_t begin, int64_t end) { kernel(a, begin * kTile, std::min(end * kTile, a.outputs)); });
}

}  // namespace sluice::models
