// flat_step_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include "models/cuda/flat_step_kernel.h"
#include "models/cuda/launch.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr int kFlatThreads = 256;

template <int kPack>
__global__ void __launch_bounds__(kFlatThreads) adamw_step_flat(AdamWArguments in) {
  flat_step::adamw<kFlatThreads, kPack, gpu::Bfloat16>(in, gpu::Thread());
}

template <int kPack>
__global__ void __launch_bounds__(kFlatThreads) squares_of_blocks(SquaresArguments in) {
  __shared__ flat_step::Shared<kFlatThreads> shared;
  flat_step::squares_of_block<kFlatThreads, kPack>(in, shared, gpu::Thread());
}

__global__ void __launch_bounds__(kFlatThreads) total_of_squares(SquaresArguments in) {
  __shared__ flat_step::Shared<kFlatThreads> shared;
  flat_step::total_of_partial<kFlatThreads>(in, shared, gpu::Thread());
}

}  // namespace

const char* launch_adamw(const AdamWArguments& in) {
  if (in.count == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_pack<4>(in.count, {in.weights, in.gradients, in.first_moments, in.second_moments, in.written}, [&](auto pack) {
      constexpr int kPack = decltype(pack)::value;
      adamw_step_flat<kPack><<<gpu::blocks_for(in.count, kFlatThreads * kPack), kFlatThreads, 0, gpu::stream(in)>>>(in);
    });
  });
}

const char* launch_squares(const SquaresArguments& in) {
  return gpu::launched(in.device, [&] {
    gpu::with_pack<4>(in.count, {in.values}, [&](auto pack) {
      if (in.count == 0) return;
      squares_of_blocks<decltype(pack)::value>
          <<<gpu::blocks_for(in.count, kSquaresOfABlock), kFlatThreads, 0, gpu::stream(in)>>>(in);
    });
    total_of_squares<<<1, kFlatThreads, 0, gpu::stream(in)>>>(in);
  });
}

}  // namespace sluice::models
