#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "models/cuda/own_kernels.h"

// nvcc compiles what follows for GPUs, and g++ for the tests, which run it on the host.
#ifdef __CUDACC__
#define SLUICE_ON_GPU __device__ __forceinline__
#else
#define SLUICE_ON_GPU inline
#endif

// The body of our attention of one new token a sequence over keys and values that lie in blocks: what one thread does. Its plain
// reference is portable::paged_attention().
//
// A thread block computes one query head of one sequence. Its warps take the keys in turn; the lanes of a warp share the dimensions
// of a head. Each warp keeps a running softmax (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"), and the
// warps' parts are put together at the end. Sums are float32.
//
// Not tuned: query heads that share a key head read it each for itself.
namespace sluice::models::paged_decode {

constexpr int kLanes = 32, kWarps = 4, kThreads = kWarps * kLanes;

/// Element types: float32 for sums, and back. Specialised where the type is known.
template <class T>
struct Element;

template <>
struct Element<float> {
  static SLUICE_ON_GPU float wide(float x) { return x; }
  static SLUICE_ON_GPU float narrow(float x) { return x; }
};

/// Of a thread block: what each warp has seen.
struct Shared {
  float largest[kWarps], sums[kWarps], values[kWarps][kMostHeadDim];
};

/// Thread blocks along x and y.
struct Grid {
  int32_t x, y;
};
inline Grid grid_of(const PagedDecodeArguments& in) { return {in.heads, in.sequences}; }

/// Calls `use` with the number of dimensions that a lane has of a head, a constant of its type: so that they are registers.
template <class Use>
void with_dims_of_lane(int32_t head_dim, const Use& use) {
  if (head_dim <= 2 * kLanes) return use(std::integral_constant<int, 2>());
  if (head_dim <= 3 * kLanes) return use(std::integral_constant<int, 3>());
  if (head_dim <= 4 * kLanes) return use(std::integral_constant<int, 4>());
  use(std::integral_constant<int, kMostHeadDim / kLanes>());
}

/// A lane's part of a head: dimensions lane, lane + 32, ... Those behind the head's last are 0.
template <int kDims>
struct Part {
  float of[kDims] = {};
};

template <int kDims, class T>
SLUICE_ON_GPU Part<kDims> part_of(const T* row, int lane, int head_dim) {
  Part<kDims> part;
  for (int i = 0; i < kDims; ++i) {
    const int d = lane + i * kLanes;
    if (d < head_dim) part.of[i] = Element<T>::wide(row[d]);
  }
  return part;
}

/// What a warp has seen so far: shares relative to the largest score, their sum, and the values weighted by them.
template <int kDims>
struct RunningSoftmax {
  float largest = -INFINITY;
  float sum = 0;
  Part<kDims> values;

  SLUICE_ON_GPU void add(float score, const Part<kDims>& value) {
    const float top = fmaxf(largest, score), kept = expf(largest - top), share = expf(score - top);
    largest = top;
    sum = sum * kept + share;
    for (int i = 0; i < kDims; ++i) values.of[i] = values.of[i] * kept + share * value.of[i];
  }
};

/// Query times key, scaled and capped: the same in all lanes.
template <int kDims, class Thread>
SLUICE_ON_GPU float score_of(const PagedDecodeArguments& in, const Part<kDims>& query, const Part<kDims>& key,
                             const Thread& thread) {
  float score = 0;
  for (int i = 0; i < kDims; ++i) score += query.of[i] * key.of[i];
  for (int step = kLanes / 2; step > 0; step /= 2) score += thread.of_lane_across(step, score);
  score *= in.scale;
  return in.softcap > 0 ? in.softcap * tanhf(score / in.softcap) : score;
}

/// A sequence without tokens gives zeros. `Thread` tells a thread who it is, and lets it meet others:
///
///   int block_x(), block_y()            its thread block within grid_of()
///   int index()                         its number within the thread block, of kThreads
///   float of_lane_across(int step, float x)  the x of the lane of its warp whose number differs in the bit `step`; all lanes call it
///   void meet()                         all threads of the block come here, and see what each has written
template <int kDims, class T, class Thread>
SLUICE_ON_GPU void attend(const PagedDecodeArguments& in, Shared& shared, const Thread& thread) {
  const int head = thread.block_x(), sequence = thread.block_y(), warp = thread.index() / kLanes, lane = thread.index() % kLanes;
  const int kv_head = head / (in.heads / in.kv_heads), length = in.lengths[sequence], dim = in.head_dim;
  const int64_t query_row = (static_cast<int64_t>(sequence) * in.heads + head) * dim;
  const T *keys = static_cast<const T*>(in.keys), *values = static_cast<const T*>(in.values);
  const int32_t* table = in.table + static_cast<int64_t>(sequence) * in.table_width;

  const auto query = part_of<kDims>(static_cast<const T*>(in.query) + query_row, lane, dim);
  RunningSoftmax<kDims> seen;
  const int first = in.window > 0 && length > in.window ? length - in.window : 0;
  for (int t = first + warp; t < length; t += kWarps) {
    const int64_t slot = static_cast<int64_t>(table[t / in.block_size]) * in.block_size + t % in.block_size;
    const int64_t row = (slot * in.kv_heads + kv_head) * dim;
    const float score = score_of(in, query, part_of<kDims>(keys + row, lane, dim), thread);
    seen.add(score, part_of<kDims>(values + row, lane, dim));
  }

  if (lane == 0) shared.largest[warp] = seen.largest, shared.sums[warp] = seen.sum;
  for (int i = 0; i < kDims; ++i) shared.values[warp][lane + i * kLanes] = seen.values.of[i];
  thread.meet();

  // A warp that saw no key has -infinity, and so no weight; the first warp saw one, if there is any.
  float largest = shared.largest[0], sum = 0;
  for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, shared.largest[w]);
  for (int w = 0; w < kWarps; ++w) sum += expf(shared.largest[w] - largest) * shared.sums[w];
  for (int d = thread.index(); d < dim; d += kThreads) {
    float value = 0;
    for (int w = 0; w < kWarps; ++w) value += expf(shared.largest[w] - largest) * shared.values[w][d];
    static_cast<T*>(in.out)[query_row + d] = Element<T>::narrow(length > 0 ? value / sum : 0);
  }
}

}  // namespace sluice::models::paged_decode

#undef SLUICE_ON_GPU
