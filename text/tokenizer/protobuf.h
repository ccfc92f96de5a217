#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

/// The fields of one protobuf message, one after the other, as they stand in the file (Protocol Buffers, "Encoding").
///
///   for (ProtobufReader fields(bytes, place); const auto field = fields.next();)
///     if (field->number == 3) use(field->bytes);
///
/// Borrows the bytes. Whatever a message is nested in it, a field's `bytes` are read by a reader of their own.
class ProtobufReader {
 public:
  /// `where` names the message in errors.
  ProtobufReader(std::string_view message, std::string where) : rest_(message), where_(std::move(where)) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // of a number or a flag; of a float its bits
    std::string_view bytes;  // of a text or a message
    bool is_bytes = false;
  };

  /// The next field; nothing at the end. Throws UserError where the bytes are no message.
  std::optional<Field> next();

 private:
  uint64_t varint();
  uint64_t fixed(size_t size);
  std::string_view take(uint64_t size);
  [[noreturn]] void fail() const;

  std::string_view rest_;
  std::string where_;
};

}  // namespace sluice::text
