#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "models/cuda/gpu_thread.h"

// What the bodies of our kernels of training have in common.
namespace sluice::models::gpu {

/// Neighbours in memory, which are read and written 16 bytes at a time.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T of[kCount];
};

/// `from` is aligned as a pack is.
template <int kCount, class T>
SLUICE_ON_GPU Pack<float, kCount> wide(const T* from) {
  const Pack<T, kCount> there = *reinterpret_cast<const Pack<T, kCount>*>(from);
  Pack<float, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.of[i] = Element<T>::wide(there.of[i]);
  return pack;
}

template <int kCount, class T>
SLUICE_ON_GPU void put(const Pack<float, kCount>& pack, T* to) {
  Pack<T, kCount> there;
  for (int i = 0; i < kCount; ++i) there.of[i] = Element<T>::narrow(pack.of[i]);
  *reinterpret_cast<Pack<T, kCount>*>(to) = there;
}

/// Calls use(count) with a constant: how many neighbours a thread takes of rows of `size` numbers that begin there. kMost, or
/// one where they do not lie so that they can be read 16 bytes at a time.
template <int kMost, class Use>
void with_pack(int64_t size, std::initializer_list<const void*> begins, const Use& use) {
  bool lies = size % kMost == 0;
  for (const void* begin : begins) lies = lies && reinterpret_cast<uintptr_t>(begin) % 16 == 0;
  lies ? use(std::integral_constant<int, kMost>()) : use(std::integral_constant<int, 1>());
}

/// Over the lanes of a warp, the same in all of them.
template <class Thread>
SLUICE_ON_GPU float largest_of_lanes(float x, const Thread& thread) {
  for (int step = kLanes / 2; step > 0; step /= 2) x = fmaxf(x, thread.of_lane_across(step, x));
  return x;
}

/// Over all threads of the block, in an order of their numbers alone; the same in all of them. `shared` is used once.
template <int kThreads, class Thread>
SLUICE_ON_GPU float sum_of_block(float x, float (&shared)[kThreads / kLanes], const Thread& thread) {
  const float of_warp = sum_of_lanes(thread, x);
  if (thread.index() % kLanes == 0) shared[thread.index() / kLanes] = of_warp;
  thread.meet();
  float sum = 0;
  for (int w = 0; w < kThreads / kLanes; ++w) sum += shared[w];
  return sum;
}

}  // namespace sluice::models::gpu
