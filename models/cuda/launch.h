#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "models/cuda/thread_maths.h"
#include "models/cuda/training_kernels.h"

// For models/cuda/*.cu alone: how the bodies of kernels become kernels that are launched.
namespace sluice::models {
namespace gpu {

template <>
struct Element<__nv_bfloat16> {
  static __device__ __forceinline__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ __forceinline__ __nv_bfloat16 narrow(float x) { return __float2bfloat16(x); }
};

/// A thread of the GPU, as thread_maths.h says.
struct GpuThread {
  __device__ __forceinline__ int block_x() const { return static_cast<int>(blockIdx.x); }
  __device__ __forceinline__ int block_y() const { return static_cast<int>(blockIdx.y); }
  __device__ __forceinline__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ float of_lane_across(int step, float x) const { return __shfl_xor_sync(0xffffffffu, x, step); }
  __device__ __forceinline__ void meet() const { __syncthreads(); }
};

/// Calls `work`, which launches kernels, with the device current. A text that says what failed; null: nothing did.
template <class Work>
const char* launched(int32_t device, const Work& work) {
  int before = 0;
  cudaError_t error = cudaGetDevice(&before);
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  work();
  error = cudaGetLastError();
  cudaSetDevice(before);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <class T>
struct Type {
  using type = T;
};

/// Calls use(Type<T>()) with the type of an operand.
template <class Use>
void with_type(bool bfloat16, const Use& use) {
  bfloat16 ? use(Type<__nv_bfloat16>()) : use(Type<float>());
}

inline unsigned blocks_for(int64_t count, int64_t of_block) { return static_cast<unsigned>((count + of_block - 1) / of_block); }

}  // namespace gpu

// Launches, one file each.
const char* launch_rms_norm(const RmsNormArguments& in);
const char* launch_rms_norm_backward(const RmsNormBackwardArguments& in);
const char* launch_gated(const GatedArguments& in);
const char* launch_gated_backward(const GatedBackwardArguments& in);
const char* launch_turn(const TurnArguments& in);
const char* launch_logit_rows(const LogitRowsArguments& in);
const char* launch_logit_slopes(const LogitSlopesArguments& in);
const char* launch_adamw(const AdamWArguments& in);
const char* launch_squares(const SquaresArguments& in);

constexpr TrainingKernels kTrainingKernels{
    &launch_rms_norm,   &launch_rms_norm_backward, &launch_gated, &launch_gated_backward, &launch_turn,
    &launch_logit_rows, &launch_logit_slopes,      &launch_adamw, &launch_squares};

}  // namespace sluice::models
