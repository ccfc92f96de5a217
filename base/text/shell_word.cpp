#include "base/text/shell_word.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/text/strings.h"

namespace sluice {
namespace {

// Also bytes of UTF-8.
bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
         std::string_view("_-./+:=@%,").find(c) != std::string_view::npos;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// As bash, zsh and ksh read it: what a terminal would not show as it is stands as a number.
std::string escaped_word(std::string_view text) {
  const bool keeps_others = is_utf8(text);
  std::string word = "$'";
  for (const char c : text) {
    char number[8];
    if (is_control(c) || ((c & 0x80) != 0 && !keeps_others)) {
      std::snprintf(number, sizeof number, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      word += number;
    } else {
      word += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return word + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && is_utf8(text) && std::ranges::all_of(text, is_plain)) return std::string(text);
  if (std::ranges::any_of(text, is_control) || !is_utf8(text)) return escaped_word(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace sluice
