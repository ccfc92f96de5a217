#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

/// Bytes that fold_crc32c() takes are as many times this.
inline constexpr size_t kFoldedAtOnce = 256;

/// Whether this processor multiplies polynomials of 64 bits, eight at a time (AVX-512 and VPCLMULQDQ).
bool can_fold_crc32c();

/// What the register of CRC-32C becomes after these bytes, some but none of kFoldedAtOnce: 64 bytes in some cycles, where the
/// processor's own instruction takes 8 bytes in one. Only where can_fold_crc32c().
///
/// Source: Gopal et al. 2009, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel), section
/// "Folding".
uint32_t fold_crc32c(uint32_t crc, std::string_view bytes);

/// Likewise, and copies them to `to`, where a cache line begins, and past the caches.
uint32_t fold_and_copy_crc32c(uint32_t crc, std::string_view bytes, char* to);

}  // namespace sluice
