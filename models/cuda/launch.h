#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "models/cuda/gpu_thread.h"

// For models/cuda/*.cu: how the code of our kernels is run on a GPU.
namespace sluice::models::gpu {

/// gpu_thread.h on a GPU.
struct Thread {
  __device__ int block_x() const { return static_cast<int>(blockIdx.x); }
  __device__ int block_y() const { return static_cast<int>(blockIdx.y); }
  __device__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ float of_lane_across(int step, float x) const { return __shfl_xor_sync(0xffffffffu, x, step); }
  __device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) const {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  __device__ void meet() const { __syncthreads(); }
  // What comes next begins as soon as there is room for it, and waits here, too.
  __device__ void follow() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }
};

inline dim3 grid(int64_t x, int64_t y = 1) { return {static_cast<unsigned>(x), static_cast<unsigned>(y)}; }

/// Enqueues a kernel whose threads follow() what is before it (programmatic dependent launch, from Hopper on).
template <class... Parameters, class... Arguments>
void enqueue(void (*kernel)(Parameters...), const dim3& grid, int threads, void* stream, const Arguments&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Of a kernel's arguments.
template <class Arguments>
cudaStream_t stream(const Arguments& in) {
  return static_cast<cudaStream_t>(in.stream);
}

/// What failed of `work`, which enqueues on this device; null: nothing. The thread's device stays what it was.
template <class Work>
const char* launched(int32_t device, const Work& work) {
  int before = 0;
  cudaError_t error = cudaGetDevice(&before);
  if (error == cudaSuccess && before != device) error = cudaSetDevice(device);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  work();
  error = cudaGetLastError();
  if (before != device) cudaSetDevice(before);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template <class T>
struct Type {
  using type = T;
};

/// Calls use(Type<T>()) with the type of an operand.
template <class Use>
void with_type(bool bfloat16, const Use& use) {
  bfloat16 ? use(Type<Bfloat16>()) : use(Type<float>());
}

inline unsigned blocks_for(int64_t count, int64_t of_block) { return static_cast<unsigned>((count + of_block - 1) / of_block); }

}  // namespace sluice::models::gpu
