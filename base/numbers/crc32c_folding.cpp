#include "base/numbers/crc32c_folding.h"

#include <array>
#include <cstdint>

#include "base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {

#if defined(__x86_64__)

namespace {

// x^bits modulo the polynomial, with its bits in the order that the instruction of a product wants: reversed, one place up.
constexpr uint64_t power_of_x(size_t bits) {
  uint32_t power = 0x80000000;  // 1
  for (size_t i = 0; i < bits; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? 0x82F63B78 : 0);
  return uint64_t{power} << 1;
}

// What a lane of 128 bits is multiplied by to stand for the same remainder so many bits later: its earlier half and its later
// half.
struct Step {
  uint64_t earlier = 0, later = 0;
};

constexpr Step step(size_t bits) { return {power_of_x(bits + 32), power_of_x(bits - 32)}; }

constexpr Step kOneLane = step(128), kOneRegister = step(512), kFourRegisters = step(2048);

__attribute__((target("avx512f"))) __m512i in_each_lane(const Step& step) {
  const auto earlier = static_cast<int64_t>(step.earlier), later = static_cast<int64_t>(step.later);
  return _mm512_set_epi64(later, earlier, later, earlier, later, earlier, later, earlier);
}

// `value`, so many bits later, on top of what is there.
__attribute__((target("avx512f,vpclmulqdq"))) __m512i moved_to(__m512i there, __m512i value, __m512i step) {
  const __m512i earlier = _mm512_clmulepi64_epi128(value, step, 0x00), later = _mm512_clmulepi64_epi128(value, step, 0x11);
  return _mm512_ternarylogic_epi64(earlier, later, there, 0x96);  // the xor of all three
}

__attribute__((target("pclmul,sse4.2"))) __m128i lane_of(uint64_t earlier, uint64_t later) {
  return _mm_set_epi64x(static_cast<int64_t>(later), static_cast<int64_t>(earlier));
}

__attribute__((target("pclmul,sse4.2"))) __m128i moved_to(__m128i there, __m128i value, const Step& step) {
  const __m128i by = lane_of(step.earlier, step.later);
  return _mm_xor_si128(there, _mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11)));
}

template <bool kCopies>
__attribute__((target("avx512f"))) __m512i taken(const char* from, [[maybe_unused]] char* to) {
  const __m512i value = _mm512_loadu_si512(from);
  if constexpr (kCopies) _mm512_stream_si512(reinterpret_cast<__m512i*>(to), value);
  return value;
}

// Four lanes in a row have the remainder of one.
__attribute__((target("avx512f,pclmul,sse4.2"))) uint32_t remainder_of(__m512i value) {
  alignas(64) std::array<uint64_t, 8> words;
  _mm512_store_si512(words.data(), value);
  __m128i lane = lane_of(words[0], words[1]);
  for (size_t i = 2; i < words.size(); i += 2) lane = moved_to(lane_of(words[i], words[i + 1]), lane, kOneLane);
  const uint64_t crc = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(lane, 0)));
  return static_cast<uint32_t>(_mm_crc32_u64(crc, static_cast<uint64_t>(_mm_extract_epi64(lane, 1))));
}

template <bool kCopies>
__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) uint32_t fold(uint32_t crc, std::string_view bytes, char* to) {
  SLUICE_CHECK(!bytes.empty() && bytes.size() % kFoldedAtOnce == 0, "bytes that are not folded");
  const char* const from = bytes.data();
  const auto at = [&](size_t place) { return kCopies ? to + place : nullptr; };
  const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc)));
  __m512i a = _mm512_xor_si512(taken<kCopies>(from, at(0)), before), b = taken<kCopies>(from + 64, at(64)),
          c = taken<kCopies>(from + 128, at(128)), d = taken<kCopies>(from + 192, at(192));
  const __m512i far = in_each_lane(kFourRegisters);
  for (size_t i = kFoldedAtOnce; i != bytes.size(); i += kFoldedAtOnce) {
    a = moved_to(taken<kCopies>(from + i, at(i)), a, far);
    b = moved_to(taken<kCopies>(from + i + 64, at(i + 64)), b, far);
    c = moved_to(taken<kCopies>(from + i + 128, at(i + 128)), c, far);
    d = moved_to(taken<kCopies>(from + i + 192, at(i + 192)), d, far);
  }
  const __m512i near = in_each_lane(kOneRegister);
  return remainder_of(moved_to(d, moved_to(c, moved_to(b, a, near), near), near));
}

}  // namespace

bool can_fold_crc32c() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2");
}

__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) uint32_t fold_crc32c(uint32_t crc, std::string_view bytes) {
  return fold<false>(crc, bytes, nullptr);
}

__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) uint32_t fold_and_copy_crc32c(uint32_t crc, std::string_view bytes,
                                                                                          char* to) {
  SLUICE_CHECK(reinterpret_cast<uintptr_t>(to) % 64 == 0, "a copy to no cache line");
  const uint32_t folded = fold<true>(crc, bytes, to);
  _mm_sfence();  // who hears of the copy is to see it
  return folded;
}

#else

bool can_fold_crc32c() { return false; }

uint32_t fold_crc32c(uint32_t, std::string_view) { throw InternalError("this processor does not fold"); }

uint32_t fold_and_copy_crc32c(uint32_t, std::string_view, char*) { throw InternalError("this processor does not fold"); }

#endif

}  // namespace sluice
