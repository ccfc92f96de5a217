#include <bit>
#include <cstring>

#include "base/error.h"
#include "models/folder/safetensors_header.h"
#include "tests/fuzz/target.h"

namespace {

// What it accepts must lie within the file.
void read(std::string_view file) {
  try {
    for (const auto& tensor : sluice::models::parse_safetensors_header(std::as_bytes(std::span(file)), "model.safetensors"))
      SLUICE_CHECK(tensor.begin <= tensor.end && tensor.end <= file.size(), tensor.name);
  } catch (const sluice::UserError&) {
  }
}

}  // namespace

// A safetensors file; and the same bytes as the header of one whose length is right, before 32 bytes of data.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = sluice::fuzz::text_of(data, size);
  read(input);
  std::string file(sizeof(uint64_t), '\0');
  const uint64_t length = size;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(file.data(), &length, sizeof length);
  read(file.append(input).append(32, '\0'));
  return 0;
}
