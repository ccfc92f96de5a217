#pragma once

#include <bit>
#include <cstdint>

namespace sluice::models {

/// The upper half of a float32: 8 bits of exponent, 8 of precision. A tensor of at::kBFloat16 is an array of these.
enum class Bfloat16 : uint16_t {};

inline float to_float(float value) { return value; }
inline float to_float(Bfloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

/// To the nearest, ties to even; NaN stays NaN.
inline Bfloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<Bfloat16>(bits >> 16 | 0x40);
  return static_cast<Bfloat16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace sluice::models
