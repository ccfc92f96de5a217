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

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/kernels/outer_product.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

int64_t outer_product_scratch_bytes() { return Scratch::kWords * static_cast<int64_t>(sizeof(int32_t)); }

void add_outer_product(const OuterProductArguments& a, InstructionSet set) {
  const auto kernel = with_kernels(
      set, [&](auto kernels) { return a.precision == Precision::kFloat32 ? kernels.of_floats : kernels.of_bfloat16; });
  constexpr int64_t kTile = 12;  // a thread's outputs are whole tiles
  const int64_t tiles = (a.outputs + kTile - 1) / kTile;
  parallel_ranges(tiles, kMinOutputs / kTile,
                  [&](int64_t begin, int64_t end) { kernel(a, begin * kTile, std::min(end * kTile, a.outputs)); });
}

}  // namespace sluice::models
