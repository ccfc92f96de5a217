// rms_norm_kernel.h on GPUs. The tests are in tests/models/cuda/: on a GPU training_operators_test.cpp, on the host
// training_kernels_test.cpp.

#include "models/cuda/launch.h"
#include "models/cuda/rms_norm_kernel.h"
#include "models/cuda/training_parts.h"

namespace sluice::models {
namespace {

constexpr int kNormColumnThreads = 64, kNormPack = 8, kNormColumnPack = 4;

template <int kThreads, int kPack, class T>
__global__ void __launch_bounds__(kThreads) rms_norm_forward(RmsNormArguments in) {
  __shared__ rms_norm::Shared<kThreads> shared;
  rms_norm::forward<kThreads, kPack, T>(in, shared, gpu::Thread());
}

template <int kThreads, int kPack, class T>
__global__ void __launch_bounds__(kThreads) rms_norm_backward(RmsNormBackwardArguments in) {
  __shared__ rms_norm::Shared<kThreads> shared;
  rms_norm::backward<kThreads, kPack, T>(in, shared, gpu::Thread());
}

template <int kPack, class T>
__global__ void __launch_bounds__(kNormColumnThreads) rms_norm_weight_sums(RmsNormBackwardArguments in) {
  rms_norm::weight_sums<kNormColumnThreads, kPack, T>(in, gpu::Thread());
}

// A head is a warp's work, a hidden state that of four.
template <class Use>
void with_threads(int64_t size, const Use& use) {
  size <= 512 ? use(std::integral_constant<int, 32>()) : use(std::integral_constant<int, 128>());
}

template <class T>
void weight_sums_of(const RmsNormBackwardArguments& in) {
  gpu::with_pack<kNormColumnPack>(in.size, {in.grad, in.x, in.of_weight}, [&](auto pack) {
    constexpr int kPack = decltype(pack)::value;
    const dim3 grid(gpu::blocks_for(in.size, kNormColumnThreads * kPack), static_cast<unsigned>(in.slices));
    rms_norm_weight_sums<kPack, T><<<grid, kNormColumnThreads, 0, gpu::stream(in)>>>(in);
  });
}

}  // namespace

const char* launch_rms_norm(const RmsNormArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_pack<kNormPack>(in.size, {in.x, in.weight, in.out}, [&](auto pack) {
      gpu::with_type(in.bfloat16, [&](auto type) {
        with_threads(in.size, [&](auto threads) {
          constexpr int kThreads = decltype(threads)::value;
          rms_norm_forward<kThreads, decltype(pack)::value, typename decltype(type)::type>
              <<<static_cast<unsigned>(in.rows), kThreads, 0, gpu::stream(in)>>>(in);
        });
      });
    });
  });
}

const char* launch_rms_norm_backward(const RmsNormBackwardArguments& in) {
  if (in.rows == 0) return nullptr;
  return gpu::launched(in.device, [&] {
    gpu::with_type(in.bfloat16, [&](auto type) {
      using T = typename decltype(type)::type;
      if (in.of_weight != nullptr) weight_sums_of<T>(in);
      if (in.of_x == nullptr) return;
      gpu::with_pack<kNormPack>(in.size, {in.x, in.weight, in.grad, in.of_x}, [&](auto pack) {
        with_threads(in.size, [&](auto threads) {
          constexpr int kThreads = decltype(threads)::value;
          rms_norm_backward<kThreads, decltype(pack)::value, T>
              <<<static_cast<unsigned>(in.rows), kThreads, 0, gpu::stream(in)>>>(in);
        });
      });
    });
  });
}

}  // namespace sluice::models
