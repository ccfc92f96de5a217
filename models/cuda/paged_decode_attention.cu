// Attention of one new token a sequence over keys and values that lie in blocks. Its plain reference is portable::paged_attention(),
// the test that compares them paged_decode_attention_test.cpp.
//
// A thread block computes one query head of one sequence. Its warps take the keys in turn; the lanes of a warp share the dimensions
// of a head. Each warp keeps a running softmax (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"), and the
// warps' parts are put together at the end. Sums are float32.
//
// Compiled for sm_90, with code that newer GPUs can translate. Not tuned: query heads that share a key head read it each for itself.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "models/cuda/own_kernels.h"

namespace sluice::models {
namespace {

constexpr int kLanes = 32, kWarps = 4;
constexpr int kMostHeadDim = 256, kMostOfLane = kMostHeadDim / kLanes;

__device__ float wide(float x) { return x; }
__device__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float* to, float x) { *to = x; }
__device__ void store(__nv_bfloat16* to, float x) { *to = __float2bfloat16(x); }

__device__ float warp_sum(float x) {
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// What a warp has seen so far: shares relative to the largest score, their sum, and the values weighted by them.
struct RunningSoftmax {
  float largest = -INFINITY;
  float sum = 0;
  float values[kMostOfLane] = {};  // of dimensions lane, lane + 32, ...
};

template <class T>
__global__ void attend(PagedDecodeArguments in) {
  const int head = blockIdx.x, sequence = blockIdx.y, warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const int kv_head = head / (in.heads / in.kv_heads), length = in.lengths[sequence], dim = in.head_dim;
  const int64_t query_row = (static_cast<int64_t>(sequence) * in.heads + head) * dim;
  const T *keys = static_cast<const T*>(in.keys), *values = static_cast<const T*>(in.values);
  const int32_t* table = in.table + static_cast<int64_t>(sequence) * in.table_width;

  float query[kMostOfLane] = {};
  for (int i = 0, d = lane; d < dim; ++i, d += kLanes) query[i] = wide(static_cast<const T*>(in.query)[query_row + d]) * in.scale;

  RunningSoftmax seen;
  const int first = in.window > 0 && length > in.window ? length - in.window : 0;
  for (int t = first + warp; t < length; t += kWarps) {
    const int64_t slot = static_cast<int64_t>(table[t / in.block_size]) * in.block_size + t % in.block_size;
    const int64_t row = (slot * in.kv_heads + kv_head) * dim;
    float score = 0;
    for (int i = 0, d = lane; d < dim; ++i, d += kLanes) score += query[i] * wide(keys[row + d]);
    score = warp_sum(score);
    if (in.softcap > 0) score = in.softcap * tanhf(score / in.softcap);
    const float largest = fmaxf(seen.largest, score), kept = expf(seen.largest - largest), share = expf(score - largest);
    seen.largest = largest;
    seen.sum = seen.sum * kept + share;
    for (int i = 0, d = lane; d < dim; ++i, d += kLanes) seen.values[i] = seen.values[i] * kept + share * wide(values[row + d]);
  }

  __shared__ float all_largest[kWarps], all_sums[kWarps], all_values[kWarps][kMostHeadDim];
  if (lane == 0) all_largest[warp] = seen.largest, all_sums[warp] = seen.sum;
  for (int i = 0, d = lane; d < dim; ++i, d += kLanes) all_values[warp][d] = seen.values[i];
  __syncthreads();

  // A warp that saw no key has -infinity, and so no weight; the first warp saw one.
  float largest = all_largest[0], sum = 0;
  for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, all_largest[w]);
  for (int w = 0; w < kWarps; ++w) sum += expf(all_largest[w] - largest) * all_sums[w];
  for (int d = threadIdx.x; d < dim; d += kWarps * kLanes) {
    float value = 0;
    for (int w = 0; w < kWarps; ++w) value += expf(all_largest[w] - largest) * all_values[w][d];
    store(static_cast<T*>(in.out) + query_row + d, value / sum);
  }
}

void launch(const PagedDecodeArguments& in) {
  const dim3 grid(static_cast<unsigned>(in.heads), static_cast<unsigned>(in.sequences));
  if (in.bfloat16)
    attend<__nv_bfloat16><<<grid, kWarps * kLanes>>>(in);
  else
    attend<float><<<grid, kWarps * kLanes>>>(in);
}

const char* paged_decode_attention(const PagedDecodeArguments& in) {
  if (in.sequences == 0) return nullptr;
  int before = 0;
  cudaError_t error = cudaGetDevice(&before);
  if (error == cudaSuccess) error = cudaSetDevice(in.device);
  if (error != cudaSuccess) return cudaGetErrorString(error);
  launch(in);
  error = cudaGetLastError();
  cudaSetDevice(before);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

constexpr OwnKernels kKernels{kOwnKernelsVersion, kMostHeadDim, &paged_decode_attention};

}  // namespace
}  // namespace sluice::models

const sluice::models::OwnKernels* sluice_own_kernels() { return &sluice::models::kKernels; }
