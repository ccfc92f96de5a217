#pragma once

#include <random>
#include <string>

#include "text/unicode/utf8.h"

namespace sluice::text {

/// Text of code points of all planes and of pieces that patterns care about.
inline std::string random_text(std::mt19937& stream) {
  static constexpr const char* kPieces[] = {" ",   "  ", "\n",     "\r\n",   "\t",     "'s",     "'LL", "'\u017f",
                                            "'re", "'",  "12",     "a",      "Zb",     "\u00e9", "!!",  "\u00a0",
                                            "...", "1",  "\u0301", "\u3000", "\u0085", "\u0663"};
  static constexpr char32_t kEnds[] = {0x80, 0x250, 0x600, 0x3000, 0xD800, 0x20000, 0x110000};
  std::string text;
  for (size_t left = 1 + stream() % 12; left > 0; --left) {
    if (stream() % 2 == 0) {
      text += kPieces[stream() % std::size(kPieces)];
    } else {
      const char32_t code_point = stream() % kEnds[stream() % std::size(kEnds)];
      append_utf8(code_point >= 0xD800 && code_point < 0xE000 ? U'?' : code_point, text);
    }
  }
  return text;
}

}  // namespace sluice::text
