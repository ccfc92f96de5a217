#include "text/tokenizer/protobuf.h"

#include "base/error.h"

namespace sluice::text {

void ProtobufReader::fail() const {
  throw UserError(where_ + ": this is no model of SentencePiece",
                  "the file may be cut short or be a Git LFS pointer; download it again");
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) fail();
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

// Seven bits a byte, the lowest first.
uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail();
}

uint64_t ProtobufReader::fixed(size_t size) {
  const std::string_view bytes = take(size);
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const uint64_t tag = varint();
  Field field{.number = static_cast<uint32_t>(tag >> 3)};
  switch (tag & 7) {
    case 0:
      field.value = varint();
      return field;
    case 1:
      field.value = fixed(8);
      return field;
    case 2:
      field.bytes = take(varint());
      field.is_bytes = true;
      return field;
    case 5:
      field.value = fixed(4);
      return field;
    default:
      fail();
  }
}

}  // namespace sluice::text
