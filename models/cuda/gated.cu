// gated_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include "models/cuda/gated_kernel.h"
#include "models/cuda/launch.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr int kGatedThreads = 256;

template <int kPack, class T>
__global__ void __launch_bounds__(kGatedThreads) gated_forward(GatedArguments in) {
  gated::forward<kGatedThreads, kPack, T>(in, gpu::Thread());
}

template <int kPack, class Grad, class Result>
__global__ void __launch_bounds__(kGatedThreads) gated_backward(GatedBackwardArguments in) {
  gated::backward<kGatedThreads, kPack, Grad, Result>(in, gpu::Thread());
}

template <class Grad, class Result>
void backward_into(const GatedBackwardArguments& in) {
  gpu::with_pack<8>(in.count, {in.grad, in.gate, in.up, in.of_gate, in.of_up}, [&](auto pack) {
    constexpr int kPack = decltype(pack)::value;
    gated_backward<kPack, Grad, Result>
        <<<gpu::blocks_for(in.count, kGatedThreads * kPack), kGatedThreads, 0, gpu::stream(in)>>>(in);
  });
}

}  // namespace

const char* launch_gated(const GatedArguments& in) {
  if (in.count == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_pack<8>(in.count, {in.gate, in.up, in.out}, [&](auto pack) {
      gpu::with_type(in.bfloat16, [&](auto type) {
        constexpr int kPack = decltype(pack)::value;
        gated_forward<kPack, typename decltype(type)::type>
            <<<gpu::blocks_for(in.count, kGatedThreads * kPack), kGatedThreads, 0, gpu::stream(in)>>>(in);
      });
    });
  });
}

const char* launch_gated_backward(const GatedBackwardArguments& in) {
  if (in.count == 0) return nullptr;
  if (in.narrow_result && !in.bfloat16) return "a gradient that is rounded after the activation and not before";
  return gpu::launched(in.device, [&] {
    if (in.narrow_result) return backward_into<gpu::Bfloat16, gpu::Bfloat16>(in);
    in.bfloat16 ? backward_into<gpu::Bfloat16, float>(in) : backward_into<float, float>(in);
  });
}

}  // namespace sluice::models
