// row_kernels.h and skinny_product_kernel.h on GPUs. The tests that compare them with their references: row_kernels_test.cpp and
// skinny_product_test.cpp on the host, own_step_test.cpp on a GPU.

#include "models/cuda/launch.h"
#include "models/cuda/row_kernels.h"
#include "models/cuda/skinny_product_kernel.h"
#include "models/cuda/step_parts.h"

namespace sluice::models {
namespace {

template <int kTiles>
__global__ void __launch_bounds__(skinny_product::kThreads, 1) skinny_multiply(StepProductArguments in) {
  __shared__ skinny_product::Shared<kTiles> shared;
  skinny_product::multiply<kTiles>(in, shared, gpu::Thread());
}

template <int kTiles>
__global__ void __launch_bounds__(skinny_product::kThreads, 1) skinny_multiply_gated(GatedProductArguments in) {
  __shared__ skinny_product::Shared<kTiles> shared;
  skinny_product::multiply_gated<kTiles>(in, shared, gpu::Thread());
}

template <int kFours>
__global__ void __launch_bounds__(row_kernels::kThreads, 1) residual_rows(ResidualArguments in) {
  __shared__ row_kernels::Shared shared;
  row_kernels::residual<kFours>(in, shared, gpu::Thread());
}

__global__ void __launch_bounds__(row_kernels::kHeadThreads, 1) heads_of_rows(HeadsArguments in) {
  row_kernels::heads(in, gpu::Thread());
}

__global__ void __launch_bounds__(row_kernels::kThreads, 1) gate_rows(GateArguments in) { row_kernels::gate(in, gpu::Thread()); }

void launch_gate(const GateArguments& in) {
  gpu::enqueue(gate_rows, gpu::grid(row_kernels::gate_blocks(in), in.rows), row_kernels::kThreads, in.stream, in);
}

}  // namespace

bool is_skinny(const StepProductArguments& in) { return in.rows <= skinny_product::kRowsOfTile; }

void launch_skinny_product(const StepProductArguments& in) {
  skinny_product::with_tiles(in, [&](auto tiles) {
    constexpr int kTiles = decltype(tiles)::value;
    gpu::enqueue(skinny_multiply<kTiles>, gpu::grid(skinny_product::blocks_of<kTiles>(in)), skinny_product::kThreads, in.stream,
                 in);
  });
}

void launch_skinny_gated(const GatedProductArguments& in) {
  if (!in.of.gated) {  // a product with a gate after it
    launch_skinny_product({.x = in.x,
                           .w = in.up,
                           .y = in.projected,
                           .rows = in.of.rows,
                           .inputs = in.inputs,
                           .outputs = in.of.size,
                           .apart = in.of.size,
                           .stream = in.of.stream});
    return launch_gate(in.of);
  }
  skinny_product::with_gated_tiles(in, [&](auto tiles) {
    constexpr int kTiles = decltype(tiles)::value;
    const dim3 grid = gpu::grid(skinny_product::gated_blocks_of<kTiles>(in));
    gpu::enqueue(skinny_multiply_gated<kTiles>, grid, skinny_product::kThreads, in.of.stream, in);
  });
}

const char* residual(const ResidualArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    row_kernels::with_fours(in.size, [&](auto fours) {
      gpu::enqueue(residual_rows<decltype(fours)::value>, gpu::grid(in.rows), row_kernels::kThreads, in.stream, in);
    });
  });
}

const char* heads(const HeadsArguments& in) {
  if (in.rows == 0) return nullptr;
  const dim3 grid = gpu::grid(in.rows, row_kernels::head_blocks(in));
  return gpu::launched(in.device, [&] { gpu::enqueue(heads_of_rows, grid, row_kernels::kHeadThreads, in.stream, in); });
}

const char* gate(const GateArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] { launch_gate(in); });
}

}  // namespace sluice::models
