#pragma once

#include <cstdint>
#include <cstring>

// Vectors of sixteen floats for short loops that are not worth a kernel file of their own (for those see kernels_vectors.inc).
// Functions marked SLUICE_CPU_CLONES are compiled once for each kind of x86-64 machine and picked at load time.
//
// Without clones under sanitizers: the function that picks one runs before their run-time library is up, and would crash.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SLUICE_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SLUICE_CPU_CLONES
#endif

// Inlined into every clone: a call would cross into code for another instruction set.
#define SLUICE_INLINE inline __attribute__((always_inline))

namespace sluice::models::simd {

constexpr int64_t kLanes = 16;

using Lanes = float __attribute__((vector_size(64)));
using IntLanes = int32_t __attribute__((vector_size(64)));

// Results go through references: returning a vector by value would depend on the instruction set of the caller.
SLUICE_INLINE void load(Lanes& lanes, const float* from) { std::memcpy(&lanes, from, sizeof lanes); }
SLUICE_INLINE void store(float* to, const Lanes& lanes) { std::memcpy(to, &lanes, sizeof lanes); }

/// lanes = e^lanes, within 2 ulp; exactly 0 below -87 (where float32 has no normal numbers left), at most e^88.
SLUICE_INLINE void exponential(Lanes& lanes) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // ln 2 in two parts: n * kLn2High is exact
  constexpr float kRound = 12582912.0f;                                // 1.5 * 2^23: adding it rounds to an integer
  const IntLanes vanishes = lanes < -87.0f;
  Lanes x = lanes > 88.0f ? Lanes{} + 88.0f : lanes;
  x = vanishes ? Lanes{} : x;
  const Lanes shifted = x * kLog2E + kRound;
  const Lanes n = shifted - kRound;
  const Lanes r = x - n * kLn2High - n * kLn2Low;  // |r| <= ln(2) / 2
  Lanes p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  constexpr int32_t kRoundBits = 0x4B400000;  // of kRound: the integer sits in the low bits of `shifted`
  const IntLanes exponent = (IntLanes)shifted - kRoundBits + 127;
  const Lanes scale = (Lanes)(exponent << 23);
  lanes = vanishes ? Lanes{} : p * scale;
}

}  // namespace sluice::models::simd
