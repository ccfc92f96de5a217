#pragma once

#include <type_traits>

#include "models/cuda/gated_kernel.h"
#include "models/cuda/gpu_thread.h"
#include "models/cuda/step_kernels.h"

// The code of our product of few rows with a large matrix, which takes as long as reading the matrix does: what one thread does.
// Its plain reference is a product.
//
// A thread block computes some outputs of all rows. Its warps share the inputs: each reads 16 bytes of each of 8 rows of the
// matrix a lane, straight into the places that mma.m16n8k16 wants them in, the outputs being its columns and the rows of x its
// rows. Which input is which k of the product does not matter, as long as it is the same on both sides. The warps' sums are added
// in their order.
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

/// What a block multiplies rows with: kMatrices of `outputs` rows each, kTiles tiles in all of a thread block, as many of each
/// matrix.
template <int kMatrices_, int kTiles_>
struct Operands {
  static constexpr int kMatrices = kMatrices_, kTiles = kTiles_,
                       kOutputs = kTiles / kMatrices * kOfTile;  // outputs: of each matrix
  const void* w[kMatrices];
  const void* x;
  int rows, inputs, outputs;

  SLUICE_ON_GPU int64_t place_of(int row, int input, int lane) const {
    return static_cast<int64_t>(row) * inputs + input + lane % 4 * 8;
  }
};

template <int kTiles>
struct Weights {
  Words of[kTiles];

  template <class O>
  SLUICE_ON_GPU void read(const O& from, int first_output, int input, int lane) {
    constexpr int kOfMatrix = kTiles / O::kMatrices;
    SLUICE_UNROLLED
    for (int j = 0; j < kTiles; ++j) {
      const int output = clamped(first_output + j % kOfMatrix * kOfTile + lane / 4, from.outputs - 1);
      const auto* const matrix = static_cast<const uint16_t*>(from.w[j / kOfMatrix]);
      of[j] = input < from.inputs ? gpu::load_weights(matrix + from.place_of(output, input, lane)) : Words{};
    }
  }
};

struct Inputs {
  Words of[2];  // of rows lane / 4, and 8 more

  template <class O>
  SLUICE_ON_GPU void read(const O& from, int input, int lane) {
    SLUICE_UNROLLED
    for (int half = 0; half < 2; ++half) {
      const int row = half * 8 + lane / 4;
      const bool there = row < from.rows && input < from.inputs;
      of[half] = there ? gpu::load_words(static_cast<const uint16_t*>(from.x) + from.place_of(row, input, lane)) : Words{};
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

/// Leaves the sums of each warp in `shared`. Rows are 16 at most. Weights are on their way before what x comes from is done, and
/// before the products of those that came.
template <class O, class Thread>
SLUICE_ON_GPU void sum_up(const O& of, Shared<O::kTiles>& shared, const Thread& thread) {
  constexpr int kTiles = O::kTiles, kUnrolled = kTiles > 2 ? 2 : 4, kApart = kWarps * kInputs;
  const int lane = thread.index() % kLanes, warp = thread.index() / kLanes, first_output = thread.block_x() * O::kOutputs;
  float sums[kTiles][4] = {};
  int input = warp * kInputs;
  Weights<kTiles> weights[kUnrolled];
  SLUICE_UNROLLED
  for (int u = 0; u < kUnrolled; ++u) weights[u].read(of, first_output, input + u * kApart, lane);
  thread.follow();
  for (; input < of.inputs; input += kUnrolled * kApart) {
    Weights<kTiles> next[kUnrolled];
    Inputs x[kUnrolled];
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) x[u].read(of, input + u * kApart, lane);
    SLUICE_UNROLLED
    for (int u = 0; u < kUnrolled; ++u) next[u].read(of, first_output, input + (kUnrolled + u) * kApart, lane);
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
}

template <int kTiles>
SLUICE_ON_GPU float sum_of_warps(const Shared<kTiles>& shared, int row, int place) {
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += shared.sums[w][row][place];
  return sum;
}

/// use(row, place, output): each result of the block, place being the output's within its matrix.
template <class O, class Thread, class Use>
SLUICE_ON_GPU void for_each_result(const O& of, const Thread& thread, const Use& use) {
  for (int n = thread.index(); n < of.rows * O::kOutputs; n += kThreads) {
    const int row = n / O::kOutputs, place = n % O::kOutputs, output = thread.block_x() * O::kOutputs + place;
    if (output < of.outputs) use(row, place, output);
  }
}

template <int kTiles, class Thread>
SLUICE_ON_GPU void multiply(const StepProductArguments& in, Shared<kTiles>& shared, const Thread& thread) {
  const Operands<1, kTiles> of{{in.w}, in.x, in.rows, in.inputs, in.outputs};
  sum_up(of, shared, thread);
  for_each_result(of, thread, [&](int row, int place, int output) {
    in.y[static_cast<int64_t>(row) * in.apart + output] = sum_of_warps(shared, row, place);
  });
}

/// Two tiles at least, as many of the gate's matrix as of the other.
template <int kTiles, class Thread>
SLUICE_ON_GPU void multiply_gated(const GatedProductArguments& in, Shared<kTiles>& shared, const Thread& thread) {
  using Both = Operands<2, kTiles>;
  const GateArguments& gate = in.of;
  const Both of{{in.gate, in.up}, in.x, gate.rows, in.inputs, gate.size};
  sum_up(of, shared, thread);
  for_each_result(of, thread, [&](int row, int place, int output) {
    const auto biased = [&](int at, const float* bias) {
      return sum_of_warps(shared, row, at) + (bias != nullptr ? bias[output] : 0.0f);
    };
    const float x =
        gated::activated(gate.gate, biased(place, gate.gate_bias)).value * biased(Both::kOutputs + place, gate.up_bias);
    static_cast<gpu::Bfloat16*>(gate.out)[static_cast<int64_t>(row) * gate.size + output] =
        gpu::Element<gpu::Bfloat16>::narrow(x);
  });
}

constexpr int64_t kBlocks = 500;  // so that each multiprocessor has a few

/// Calls `use` with the tiles of a thread block for these arguments.
template <class Use>
void with_tiles(const StepProductArguments& in, const Use& use) {
  if (blocks_of<4>(in) >= kBlocks) return use(std::integral_constant<int, 4>());
  if (blocks_of<2>(in) >= kBlocks) return use(std::integral_constant<int, 2>());
  use(std::integral_constant<int, 1>());
}
template <int kTiles>
inline int64_t gated_blocks_of(const GatedProductArguments& in) {
  constexpr int kOutputs = kTiles / 2 * kOfTile;
  return (in.of.size + kOutputs - 1) / kOutputs;
}
template <class Use>
void with_gated_tiles(const GatedProductArguments& in, const Use& use) {
  gated_blocks_of<4>(in) >= kBlocks ? use(std::integral_constant<int, 4>()) : use(std::integral_constant<int, 2>());
}

}  // namespace sluice::models::skinny_product
