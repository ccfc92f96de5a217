#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

/// CRC-32C (Castagnoli) of `bytes`, by the processor's own instruction where it has one. With `before`, the checksum of what came
/// before them, of both together.
/// Source: RFC 3720, appendix B.4 has the test vectors.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

/// Copies `bytes` to `to`, which they do not overlap, and returns their checksum: both at once, where that is as fast as a copy.
/// Of what goes from cache line to cache line nothing is left in the caches, so it is for what nobody reads soon.
uint32_t copy_crc32c(std::string_view bytes, char* to);

/// Of eight hexadecimal digits.
std::string checksum_text(uint32_t checksum);

class MappedFile;

/// Of a whole file, a piece at a time.
uint32_t crc32c(const MappedFile& file);

}  // namespace sluice
