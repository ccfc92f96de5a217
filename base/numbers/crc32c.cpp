#include "base/numbers/crc32c.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/files/mapped_file.h"
#include "base/numbers/crc32c_folding.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sluice {
namespace {

constexpr size_t kInCache = size_t{64} << 10;  // is copied and then read again

constexpr uint32_t kPolynomial = 0x82F63B78;  // bit-reversed 0x1EDC6F41

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    table[byte] = remainder;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

uint32_t by_table(uint32_t crc, std::string_view bytes) {
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return crc;
}

#if defined(__x86_64__)

// The instruction takes three cycles but one can begin each cycle: three stripes side by side keep it busy. The next three are
// asked for meanwhile, since the processor sees no long stream to read ahead: without that it takes twice as long where they are
// in memory.
constexpr size_t kStripe = 2048;
constexpr size_t kCacheLine = 64;
constexpr size_t kWorthFolding = 1024;  // bytes

using Skips = std::array<std::array<uint32_t, 256>, 4>;

// What a register becomes when kStripe zero bytes follow. That is linear: the xor of what each of its bytes becomes.
constexpr Skips make_skips() {
  Skips skips{};
  for (size_t place = 0; place < 4; ++place) {
    for (size_t bit = 0; bit < 8; ++bit) {
      uint32_t crc = 1u << (8 * place + bit);
      for (size_t i = 0; i < kStripe; ++i) crc = (crc >> 8) ^ kTable[crc & 0xFF];
      for (size_t byte = 0; byte < 256; ++byte) {
        if ((byte >> bit & 1) != 0) skips[place][byte] ^= crc;
      }
    }
  }
  return skips;
}

constexpr Skips kSkips = make_skips();

uint32_t skip_stripe(uint32_t crc) {
  return kSkips[0][crc & 0xFF] ^ kSkips[1][crc >> 8 & 0xFF] ^ kSkips[2][crc >> 16 & 0xFF] ^ kSkips[3][crc >> 24];
}

uint64_t word_at(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(uint32_t crc, std::string_view bytes) {
  while (bytes.size() >= 3 * kStripe) {
    uint64_t first = crc, second = 0, third = 0;
    const char* stripe = bytes.data();
    for (size_t i = 0; i < kStripe; i += sizeof(uint64_t)) {
      if (i % kCacheLine == 0) {
        for (size_t next = 3; next < 6; ++next) __builtin_prefetch(stripe + next * kStripe + i);
      }
      first = _mm_crc32_u64(first, word_at(stripe + i));
      second = _mm_crc32_u64(second, word_at(stripe + kStripe + i));
      third = _mm_crc32_u64(third, word_at(stripe + 2 * kStripe + i));
    }
    crc = skip_stripe(skip_stripe(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second)) ^ static_cast<uint32_t>(third);
    bytes.remove_prefix(3 * kStripe);
  }
  uint64_t wide = crc;
  while (bytes.size() >= sizeof wide) {
    wide = _mm_crc32_u64(wide, word_at(bytes.data()));
    bytes.remove_prefix(sizeof wide);
  }
  return by_table(static_cast<uint32_t>(wide), bytes);
}
#endif

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    uint32_t crc = ~before;
    if (bytes.size() >= kWorthFolding && can_fold_crc32c()) {
      const size_t size = bytes.size() / kFoldedAtOnce * kFoldedAtOnce;
      crc = fold_crc32c(crc, bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    return ~by_instruction(crc, bytes);
  }
#endif
  return ~by_table(~before, bytes);
}

uint32_t copy_crc32c(std::string_view bytes, char* to) {
  uint32_t checksum = 0;
#if defined(__x86_64__)
  const bool is_whole_line = reinterpret_cast<uintptr_t>(to) % kCacheLine == 0;
  if (const size_t size = bytes.size() / kFoldedAtOnce * kFoldedAtOnce; size > 0 && is_whole_line && can_fold_crc32c()) {
    checksum = ~fold_and_copy_crc32c(~checksum, bytes.substr(0, size), to);
    bytes.remove_prefix(size);
    to += size;
  }
#endif
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kInCache, bytes.size()))) {
    const std::string_view part = bytes.substr(0, kInCache);
    std::memcpy(to, part.data(), part.size());
    to += part.size();
    checksum = crc32c(part, checksum);
  }
  return checksum;
}

std::string checksum_text(uint32_t checksum) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", checksum);
  return text.data();
}

uint32_t crc32c(const MappedFile& file) {
  uint32_t checksum = 0;
  file.for_each_piece([&](std::string_view piece) { checksum = crc32c(piece, checksum); });
  return checksum;
}

}  // namespace sluice
