#pragma once

#include <cstdint>

// What the code of our kernels is written in. nvcc compiles it for GPUs, and g++ for the tests, which run it on the host with the
// same blocks, threads, warps and lanes.
#ifdef __CUDACC__
#define SLUICE_ON_GPU __device__ __forceinline__
#define SLUICE_UNROLLED _Pragma("unroll")  // a loop whose counter picks registers
#else
#define SLUICE_ON_GPU inline
#define SLUICE_UNROLLED
#include <cmath>
#include <cstring>
#endif

// A kernel's code is a function that is given a `Thread`: who it is, and how it meets others.
//
//   int block_x(), block_y()            its thread block
//   int index()                         its number within the thread block
//   float of_lane_across(int step, float x)  the x of the lane of its warp whose number differs in the bits `step`
//   void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
//                                       sums += a b of a whole warp, bfloat16 in float32: mma.m16n8k16 of PTX
//   void meet()                         all threads of the block come here, and see what each has written
//   void follow()                       until what was enqueued before is done: a kernel begins while that still runs, so nothing of it
//                                       may be read, and nothing written, before
//
// All lanes of a warp call of_lane_across() and multiply() together.
namespace sluice::models::gpu {

constexpr int kLanes = 32;

/// 16 bytes: what a thread reads of memory at once.
struct alignas(16) Words {
  uint32_t of[4];
};

/// `from` is a multiple of 16 bytes.
SLUICE_ON_GPU Words load_words(const void* from) {
#ifdef __CUDACC__
  const uint4 words = *static_cast<const uint4*>(from);
  return {{words.x, words.y, words.z, words.w}};
#else
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
#endif
}

/// Of weights, which nobody writes while anything of ours runs, and which are read once: they leave caches to others.
SLUICE_ON_GPU Words load_weights(const void* from) {
#ifdef __CUDACC__
  Words words;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words.of[0]), "=r"(words.of[1]), "=r"(words.of[2]), "=r"(words.of[3])
               : "l"(from));
  return words;
#else
  return load_words(from);
#endif
}

SLUICE_ON_GPU float float_of_bits(uint32_t bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

SLUICE_ON_GPU uint32_t bits_of_float(float x) {
#ifdef __CUDACC__
  return __float_as_uint(x);
#else
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

/// A bfloat16 as it lies in memory.
struct Bfloat16 {
  uint16_t bits;
};

/// Element types: float32 for sums, and back, rounded to the nearest even.
template <class T>
struct Element;

template <>
struct Element<float> {
  static constexpr int kInWords = 4;  // elements of 16 bytes
  static SLUICE_ON_GPU float wide(float x) { return x; }
  static SLUICE_ON_GPU float narrow(float x) { return x; }
  static SLUICE_ON_GPU float wide(const Words& words, int i) { return float_of_bits(words.of[i]); }
};

template <>
struct Element<Bfloat16> {
  static constexpr int kInWords = 8;
  static SLUICE_ON_GPU float wide(Bfloat16 x) { return float_of_bits(static_cast<uint32_t>(x.bits) << 16); }
  static SLUICE_ON_GPU Bfloat16 narrow(float x) {
#ifdef __CUDACC__
    uint16_t narrowed;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrowed) : "f"(x));
    return {narrowed};
#else
    const uint32_t bits = bits_of_float(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fc0};  // NaN
    return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
  }
  static SLUICE_ON_GPU float wide(const Words& words, int i) {
    const uint32_t word = words.of[i / 2];
    return float_of_bits(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  }
};

/// Two bfloat16 of a word, the first in its lower half.
SLUICE_ON_GPU uint32_t narrow_pair(float first, float second) {
#ifdef __CUDACC__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return Element<Bfloat16>::narrow(first).bits | static_cast<uint32_t>(Element<Bfloat16>::narrow(second).bits) << 16;
#endif
}

/// The lower halves of two words in one, and the upper ones.
SLUICE_ON_GPU uint32_t lower_halves(uint32_t first, uint32_t second) { return (first & 0xffffu) | second << 16; }
SLUICE_ON_GPU uint32_t upper_halves(uint32_t first, uint32_t second) { return first >> 16 | (second & 0xffff0000u); }

/// The sum of x over `lanes` neighbouring lanes, a power of two, the same in all of them.
template <class Thread>
SLUICE_ON_GPU float sum_of_lanes(const Thread& thread, float x, int lanes = kLanes) {
  for (int step = lanes / 2; step > 0; step /= 2) x += thread.of_lane_across(step, x);
  return x;
}

}  // namespace sluice::models::gpu
