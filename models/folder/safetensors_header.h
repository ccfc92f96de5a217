#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::models {

/// One tensor of a safetensors file, as its header describes it.
struct TensorEntry {
  std::string name;
  std::string dtype;           // as written: "F32", "BF16", ...
  std::vector<int64_t> shape;  // empty: a scalar
  size_t begin = 0;            // bytes [begin, end) of the file
  size_t end = 0;
  std::optional<uint32_t> checksum;  // CRC-32C of those bytes, where the file says it
};

/// The metadata of a file has the checksum of tensor NAME under this followed by NAME, as checksum_text() writes it.
inline constexpr const char* kChecksumKey = "crc32c/";

/// Reads and checks the header of a safetensors file: its length (at most 100 MB), UTF-8, JSON, dtypes, shapes, and offsets that
/// cover the rest of the file without hole or overlap. What it returns can be read without any further check but that of the
/// checksums. At most 200,000 tensors, 64 dimensions, names of 1024 bytes.
///
/// file       the whole file
/// file_name  named in errors
/// returns    the tensors in the order of their data
///
/// Throws UserError naming the file, the tensor and what was expected. Memory stays within a small multiple of the header.
/// Source: https://github.com/huggingface/safetensors, "Format".
std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file, const std::string& file_name);

}  // namespace sluice::models
