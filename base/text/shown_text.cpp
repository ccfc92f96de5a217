#include "base/text/shown_text.h"

#include <cstdio>

#include "base/text/strings.h"
#include "base/text/utf8.h"

namespace sluice {
namespace {

constexpr unsigned kLastAscii = 0x7f;

size_t length_of_character(std::string_view text) {
  size_t length = 1;
  while (length < text.size() && is_continuation(text[length])) ++length;
  return length;
}

std::string escaped_bytes(std::string_view bytes) {
  std::string escaped;
  for (const char c : bytes) {
    char escape[5];
    std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
    escaped += escape;
  }
  return escaped;
}

// Control characters beyond ASCII (U+0080 to U+009F), and those that turn the direction (U+202A to U+202E, U+2066 to U+2069).
bool is_obeyed(std::string_view character) {
  if (character.size() == 2) return character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
  if (character.size() != 3 || character[0] != '\xe2') return false;
  const auto last = static_cast<unsigned char>(character[2]);
  return (character[1] == '\x80' && last >= 0xaa && last <= 0xae) || (character[1] == '\x81' && last >= 0xa6 && last <= 0xa9);
}

}  // namespace

std::string shown_text(std::string_view text, size_t most) {
  const bool well_formed = is_utf8(text);
  std::string shown = "\"";
  size_t at = 0;
  while (at < text.size() && at < most) {
    const bool ascii = static_cast<unsigned char>(text[at]) <= kLastAscii;
    const std::string_view character = text.substr(at, well_formed && !ascii ? length_of_character(text.substr(at)) : 1);
    if (ascii) {
      const std::string one = quoted(character);
      shown += one.substr(1, one.size() - 2);
    } else {
      shown += well_formed && !is_obeyed(character) ? std::string(character) : escaped_bytes(character);
    }
    at += character.size();
  }
  return shown + (at < text.size() ? "...\"" : "\"");
}

}  // namespace sluice
