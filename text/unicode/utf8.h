#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text/utf8.h"

namespace sluice::text {

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes
};

/// The code point that begins at `text`, which points into well-formed UTF-8.
inline CodePoint code_point_at(const char* text) {
  const auto byte = [text](int i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// The last code point of well-formed UTF-8 that is not empty.
CodePoint last_code_point(std::string_view text);

void append_utf8(char32_t code_point, std::string& text);

/// `bytes` with U+FFFD in place of each longest piece that begins a UTF-8 sequence but does not end it, and of each stray byte
/// (Unicode 15, section 3.9, "maximal subparts"). Well-formed text is unchanged.
std::string replace_invalid_utf8(std::string_view bytes);

/// Length of the end of `bytes` that more bytes may turn into a character: 0 to 3. What is before it is decided.
size_t unfinished_utf8(std::string_view bytes);

}  // namespace sluice::text
