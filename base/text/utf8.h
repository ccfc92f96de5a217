#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sluice {

/// Whether a byte of UTF-8 continues a character that an earlier one begins: a text is not to be cut before it.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Number of code points of well-formed UTF-8.
inline size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char byte) { return !is_continuation(byte); }));
}

}  // namespace sluice
