#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// CRC-32C (Castagnoli) of `bytes`, a byte at a time: for records of a few kilobytes.
/// Source: RFC 3720, appendix B.4 has the test vectors.
uint32_t crc32c(std::string_view bytes);

}  // namespace sluice
