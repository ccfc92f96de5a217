// paged_decode_kernel.h on GPUs. The tests that compare it with its reference: on a GPU paged_decode_attention_test.cpp, on the host
// paged_decode_kernel_test.cpp.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "models/cuda/launch.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_kernel.h"

namespace sluice::models {
namespace paged_decode {

template <>
struct Element<__nv_bfloat16> {
  static __device__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ __nv_bfloat16 narrow(float x) { return __float2bfloat16(x); }
};

}  // namespace paged_decode

namespace {

struct Thread {
  __device__ int block_x() const { return static_cast<int>(blockIdx.x); }
  __device__ int block_y() const { return static_cast<int>(blockIdx.y); }
  __device__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ float of_lane_across(int step, float x) const { return __shfl_xor_sync(0xffffffffu, x, step); }
  __device__ void meet() const { __syncthreads(); }
};

template <int kDims, class T>
__global__ void __launch_bounds__(paged_decode::kThreads) attend(PagedDecodeArguments in) {
  __shared__ paged_decode::Shared shared;
  paged_decode::attend<kDims, T>(in, shared, Thread());
}

template <class T>
void launch(const PagedDecodeArguments& in) {
  const auto [x, y] = paged_decode::grid_of(in);
  const dim3 grid(static_cast<unsigned>(x), static_cast<unsigned>(y));
  paged_decode::with_dims_of_lane(in.head_dim,
                                  [&](auto dims) { attend<decltype(dims)::value, T><<<grid, paged_decode::kThreads>>>(in); });
}

const char* paged_decode_attention(const PagedDecodeArguments& in) {
  if (in.sequences == 0) return nullptr;
  int before = 0;
  cudaError_t error = cudaGetDevice(&before);
  if (error == cudaSuccess) error = cudaSetDevice(in.device);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  in.bfloat16 ? launch<__nv_bfloat16>(in) : launch<float>(in);
  error = cudaGetLastError();
  cudaSetDevice(before);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

constexpr OwnKernels kKernels{kOwnKernelsVersion, &paged_decode_attention, kTrainingKernels};

}  // namespace
}  // namespace sluice::models

const sluice::models::OwnKernels* sluice_own_kernels() { return &sluice::models::kKernels; }
