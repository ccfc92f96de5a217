#include "text/jinja/string_literal.h"

#include <charconv>
#include <cstdio>

#include "text/jinja/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja {
namespace {

constexpr std::string_view kLetters = "\\'\"abfnrtv";
constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";

// `count` hexadecimal digits from `i` on, which moves after them; false when there are fewer.
bool read_hexadecimal(std::string_view literal, size_t& i, size_t count, char32_t& character) {
  uint32_t value = 0;
  if (i + count > literal.size()) return false;
  const auto [end, error] = std::from_chars(literal.data() + i, literal.data() + i + count, value, 16);
  if (error != std::errc() || end != literal.data() + i + count) return false;
  i += count;
  character = value;
  return true;
}

char32_t read_octal(std::string_view literal, size_t& i) {
  char32_t value = 0;
  for (int digits = 0; digits < 3 && i < literal.size() && literal[i] >= '0' && literal[i] <= '7'; ++digits, ++i)
    value = value * 8 + static_cast<char32_t>(literal[i] - '0');
  return value;
}

// The reference escapes what is not ASCII before it reads the escapes, so after a backslash the escape itself stands: "\\é" is
// \xe9.
void append_escaped(std::string& text, char32_t character) {
  char escape[16];
  std::snprintf(escape, sizeof escape,
                character < 0x100     ? "x%02x"
                : character < 0x10000 ? "u%04x"
                                      : "U%08x",
                static_cast<unsigned>(character));
  text += escape;
}

}  // namespace

const char* unescape(std::string_view literal, std::string& text) {
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] != '\\') {
      text += literal[i++];
      continue;
    }
    if (++i == literal.size()) return "a string ends in the middle of an escape";
    const char letter = literal[i];
    if (letter == '\n') {  // a line break that is none
      ++i;
      continue;
    }
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
      text += kMeanings[known];
      ++i;
      continue;
    }
    char32_t character = 0;
    if (letter >= '0' && letter <= '7') {
      character = read_octal(literal, i);
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      if (!read_hexadecimal(literal, ++i, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, character))
        return "a string holds an escape with too few hexadecimal digits";
    } else if (letter == 'N') {
      return "characters by name (\\N{...}) are not supported; use \\u";
    } else {
      text += '\\';  // no escape: both characters stand
      if (static_cast<unsigned char>(letter) >= 0x80) append_escaped(text, unicode::next(literal, i));
      continue;
    }
    if (character > 0x10FFFF || (character >= 0xD800 && character < 0xE000))
      return "a string holds an escape that is no character";
    append_utf8(character, text);
  }
  return nullptr;
}

}  // namespace sluice::text::jinja
