#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

// nvcc compiles what follows for GPUs, and g++ for the tests, which run it on the host.
#ifdef __CUDACC__
#define SLUICE_THREAD __device__ __forceinline__
#else
#define SLUICE_THREAD inline
#endif

// What the bodies of our kernels of training have in common. `Thread` tells a thread who it is, and lets it meet others:
//
//   int block_x(), block_y()                 its thread block
//   int index()                              its number within the thread block
//   float of_lane_across(int step, float x)  the x of the lane whose number differs in the bit `step`; all of a warp call it
//   void meet()                              all threads of the block come here, and see what each has written
namespace sluice::models::gpu {

constexpr int kLanes = 32;

/// Element types: float32 to count with, and back. Specialised where the type is known.
template <class T>
struct Element;

template <>
struct Element<float> {
  static SLUICE_THREAD float wide(float x) { return x; }
  static SLUICE_THREAD float narrow(float x) { return x; }
};

/// Neighbours in memory, which are read and written 16 bytes at a time.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T of[kCount];
};

/// `from` is aligned as a pack is.
template <int kCount, class T>
SLUICE_THREAD Pack<float, kCount> wide(const T* from) {
  const Pack<T, kCount> there = *reinterpret_cast<const Pack<T, kCount>*>(from);
  Pack<float, kCount> pack;
  for (int i = 0; i < kCount; ++i) pack.of[i] = Element<T>::wide(there.of[i]);
  return pack;
}

template <int kCount, class T>
SLUICE_THREAD void put(const Pack<float, kCount>& pack, T* to) {
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
SLUICE_THREAD float sum_of_lanes(float x, const Thread& thread) {
  for (int step = kLanes / 2; step > 0; step /= 2) x += thread.of_lane_across(step, x);
  return x;
}

template <class Thread>
SLUICE_THREAD float largest_of_lanes(float x, const Thread& thread) {
  for (int step = kLanes / 2; step > 0; step /= 2) x = fmaxf(x, thread.of_lane_across(step, x));
  return x;
}

/// Over all threads of the block, in an order of their numbers alone; the same in all of them. `shared` is used once.
template <int kThreads, class Thread>
SLUICE_THREAD float sum_of_block(float x, float (&shared)[kThreads / kLanes], const Thread& thread) {
  const float of_warp = sum_of_lanes(x, thread);
  if (thread.index() % kLanes == 0) shared[thread.index() / kLanes] = of_warp;
  thread.meet();
  float sum = 0;
  for (int w = 0; w < kThreads / kLanes; ++w) sum += shared[w];
  return sum;
}

}  // namespace sluice::models::gpu
