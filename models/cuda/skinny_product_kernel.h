#pragma once

#include <type_traits>

#include "models/cuda/gpu_thread.h"
#include "models/cuda/step_kernels.h"

// The code of our product of few rows with a large matrix, which takes as long as reading the matrix does: what one thread does. Its
// plain reference is a product.
//
// A thread block computes some outputs of all rows. Its warps share the inputs: each reads 16 bytes of each of 8 rows of the matrix a
// lane, straight into the places that mma.m16n8k16 wants them in, the outputs being its columns and the rows of x its rows. Which input
// is which k of the product does not matter, as long as it is the same on both sides. The warps' sums are added in their order.
namespace sluice::models::skinny_product {

using gpu::kLanes, gpu::Words;

constexpr int kWarps = 8, kThreads = kWarps * kLanes;
constexpr int kOfTile = 8;  // outputs
constexpr int kRowsOfTile = 16;
constexpr int kInputs = 32;  // that a warp reads at once

/// Of a thread block: what each warp has summed.
template <int kTiles>
struct Shared {
  float sums[kWarps][kRowsOfTile][kTiles * kOfTile];
};

/// Thread blocks.
template <int kTiles>
inline int64_t blocks_of(const StepProductArguments& in) {
  return (in.outputs + kTiles * kOfTile - 1) / (kTiles * kOfTile);
}

SLUICE_ON_GPU int clamped(int x, int most) { return x < most ? x : most; }

/// Of the lane's 16 bytes of a row, of 32 inputs from `input` on.
SLUICE_ON_GPU int64_t place_of(const StepProductArguments& in, int row, int input, int lane) {
  return static_cast<int64_t>(row) * in.inputs + input + lane % 4 * 8;
}

template <int kTiles>
struct Weights {
  Words of[kTiles];

  SLUICE_ON_GPU void read(const StepProductArguments& in, int first_output, int input, int lane) {
    SLUICE_UNROLLED
    for (int j = 0; j < kTiles; ++j) {
      const int output = clamped(first_output + j * kOfTile + lane / 4, in.outputs - 1);
      of[j] =
          input < in.inputs ? gpu::load_weights(static_cast<const uint16_t*>(in.w) + place_of(in, output, input, lane)) : Words{};
    }
  }
};

struct Inputs {
  Words of[2];  // of rows lane / 4, and 8 more

  SLUICE_ON_GPU void read(const StepProductArguments& in, int input, int lane) {
    SLUICE_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int row = half * 8 + lane / 4;
      const bool there = row < in.rows && input < in.inputs;
      of[half] = there ? gpu::load_words(static_cast<const uint16_t*>(in.x) + place_of(in, row, input, lane)) : Words{};
    }
  }

  template <int kTiles, class Thread>
  SLUICE_ON_GPU void multiply(const Weights<kTiles>& weights, float (&sums)[kTiles][4], const Thread& thread) const {
    SLUICE_UNROLLED
    for (int k = 0; k < 4; k += 2) {
      const uint32_t a[4] = {of[0].of[k], of[1].of[k], of[0].of[k + 1], of[1].of[k + 1]};
      SLUICE_UNROLLED
      for (int j = 0; j < kTiles; ++j) {
        const uint32_t b[2] = {weights.of[j].of[k], weights.of[j].of[k + 1]};
        thread.multiply(sums[j], a, b);
      }
    }
  }
};

/// in.rows <= 16. Weights are on their way before what x comes from is done, and before the products of those that came.
template <int kTiles, class Thread>
SLUICE_ON_GPU void multiply(const StepProductArguments& in, Shared<kTiles>& shared, const Thread& thread) {
  constexpr int kUnrolled = kTiles > 2 ? 2 : 4, kApart = kWarps * kInputs;
  const int lane = thread.index() % kLanes, warp = thread.index() / kLanes;
  const int first_output = thread.block_x() * kTiles * kOfTile;
  float sums[kTiles][4] = {};
  int input = warp * kInputs;
  Weights<kTiles> weights[kUnrolled];
  SLUICE_UNROLLED
  for (int u = 0; u < kUnrolled; ++u) weights[u].read(in, first_output, input + u * kApart, lane);
  thread.follow();
  for (; input < in.inputs; input += kUnrolled * kApart) {
    Weights<kTiles> next[kUnrolled];
    Inputs x[kUnrolled];
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) x[u].read(in, input + u * kApart, lane);
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) next[u].read(in, first_output, input + (kUnrolled + u) * kApart, lane);
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) x[u].multiply(weights[u], sums, thread);
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) weights[u] = next[u];
  }
  SLUICE_UNROLLED
  for (int j = 0; j < kTiles; ++j) {
    SLUICE_UNROLLED
    for (int c = 0; c < 4; ++c) shared.sums[warp][lane / 4 + (c < 2 ? 0 : 8)][j * kOfTile + lane % 4 * 2 + c % 2] = sums[j][c];
  }
  thread.meet();
  for (int n = thread.index(); n < in.rows * kTiles * kOfTile; n += kThreads) {
    const int row = n / (kTiles * kOfTile), place = n % (kTiles * kOfTile);
    if (first_output + place >= in.outputs) continue;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += shared.sums[w][row][place];
    in.y[static_cast<int64_t>(row) * in.apart + first_output + place] = sum;
  }
}

/// Calls `use` with the tiles of a thread block for these arguments: as many as leave each multiprocessor a few blocks.
template <class Use>
void with_tiles(const StepProductArguments& in, const Use& use) {
  constexpr int64_t kBlocks = 500;
  if (blocks_of<4>(in) >= kBlocks) return use(std::integral_constant<int, 4>());
  if (blocks_of<2>(in) >= kBlocks) return use(std::integral_constant<int, 2>());
  use(std::integral_constant<int, 1>());
}

}  // namespace sluice::models::skinny_product
