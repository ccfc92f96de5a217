#include "models/kernels/outer_product.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "models/kernels/bfloat16.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

// Each thread packs what it multiplies, once for all ranges of a loop that it takes. Packed by all threads together it would be
// less work, and slower where the threads have no cache in common.

constexpr int64_t kWidth = 32;            // inputs of a panel
constexpr int64_t kGradWidth = 48;        // outputs whose gradients are packed at once: whole tiles of every machine, cache lines
constexpr int64_t kMostPanelWords = 256;  // of rows of a panel: 32 KB, the first-level cache
constexpr int64_t kMostInputs = 512;      // of a unit: its panels are 512 KB at most, half of the second-level cache
constexpr int64_t kUnitOutputs = 12;      // whole tiles of every machine
constexpr int64_t kChunkWords = 768;      // of rows of a loop, some panels of them: what is packed fits one large page
constexpr int64_t kMinUnits = 2;          // packing the inputs on another thread costs more than fewer outputs gain

struct Range {
  int64_t first = 0, count = 0;
};

int64_t parts(int64_t count, int64_t size) { return (count + size - 1) / size; }

/// How long each of the fewest equal parts is that have at most `most`; a multiple of `step`.
int64_t even_part(int64_t count, int64_t most, int64_t step) { return parts(parts(count, parts(count, most)), step) * step; }

/// The rows of one loop. A unit of it is kUnitOutputs outputs and a cut of the inputs; those of a cut follow each other.
struct Chunk {
  uint64_t id;  // of all chunks there ever were
  Range rows;
  int64_t outputs, inputs;

  int64_t units() const { return of_cut() * parts(inputs, kMostInputs); }
  int64_t left_of_cut(int64_t unit) const { return of_cut() - unit % of_cut(); }
  int64_t output_of(int64_t unit) const { return unit % of_cut() * kUnitOutputs; }
  Range inputs_of(int64_t unit) const {
    const int64_t cut = even_part(inputs, kMostInputs, kWidth), first = unit / of_cut() * cut;
    return {first, std::min(cut, inputs - first)};
  }

 private:
  int64_t of_cut() const { return parts(outputs, kUnitOutputs); }
};

/// Packed rows of a thread, as words: a float32, or two bfloat16 of two rows where the machine multiplies these. On a large page:
/// small ones lie where chance puts them, and panels that are meant to be in a cache together then drive each other out of it.
class Scratch {
 public:
  static constexpr size_t kBytes = size_t{1} << 21;
  static_assert((kChunkWords * kMostInputs + kGradWidth * kMostPanelWords) * sizeof(int32_t) <= kBytes);

  Scratch() { ::madvise(words_.get(), kBytes, MADV_HUGEPAGE); }  // a wish: small pages do as well

  int32_t* panels(int64_t first_word) const { return words_.get() + first_word * kMostInputs; }
  int32_t* grad() const { return panels(kChunkWords); }

  /// What is packed is of these from now on.
  void begin(const Chunk& chunk, const Range& inputs) {
    if (chunk.id == chunk_ && inputs.first == first_input_) return;
    chunk_ = chunk.id, first_input_ = inputs.first, blocks_ = 0;
  }
  /// Whether the block is still to be packed, which is done at once. Blocks come in order.
  bool takes(int64_t block) {
    if (block < blocks_) return false;
    blocks_ = block + 1;
    return true;
  }

 private:
  static constexpr std::align_val_t kAlignment{kBytes};

  struct Free {
    void operator()(int32_t* words) const { ::operator delete(words, kAlignment); }
  };
  std::unique_ptr<int32_t, Free> words_{static_cast<int32_t*>(::operator new(kBytes, kAlignment))};
  uint64_t chunk_ = 0;
  int64_t first_input_ = 0, blocks_ = 0;
};

// Kept: the system would clear its pages each time.
Scratch& scratch_of_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

uint64_t new_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/kernels/outer_product.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

int64_t outer_product_scratch_bytes() { return Scratch::kBytes; }

void add_outer_product(const OuterProductArguments& a, InstructionSet set) {
  if (a.rows == 0 || a.outputs == 0 || a.inputs == 0) return;
  const bool wide = a.precision == Precision::kFloat32;
  void (*kernel)(const OuterProductArguments& a, const Chunk& chunk, int64_t begin, int64_t end) = nullptr;
  int64_t word = 1, block = 1;  // rows
  with_kernels(set, [&](auto kernels) {
    kernel = wide ? kernels.of_floats : kernels.of_bfloat16;
    word = wide ? 1 : kernels.rows_of_bfloat16_word;
    block = kernels.panel_words * word;
  });
  const int64_t some = even_part(a.rows, kChunkWords * word, block);
  for (int64_t row = 0; row < a.rows; row += some) {
    const Chunk chunk{new_id(), {row, std::min(some, a.rows - row)}, a.outputs, a.inputs};
    parallel_ranges(chunk.units(), kMinUnits, [&](int64_t begin, int64_t end) { kernel(a, chunk, begin, end); });
  }
}

}  // namespace sluice::models
