#include "base/text/printable.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text/strings.h"

namespace sluice {
namespace {

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

template <size_t n>
bool is_in(uint32_t code, const std::array<CodeRange, n>& ranges) {
  return std::ranges::any_of(ranges, [code](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

// East Asian wide and emoji blocks.
bool is_wide(uint32_t code) {
  constexpr std::array<CodeRange, 10> kWide{{{0x1100, 0x115F},
                                             {0x2E80, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x1FAFF},
                                             {0x20000, 0x2FFFD},
                                             {0x30000, 0x3FFFD}}};
  return is_in(code, kWide);
}

// Control characters; marks and overrides of direction; separators of lines; the byte order mark; tags.
bool is_escaped(uint32_t code) {
  constexpr std::array<CodeRange, 10> kEscaped{{{0x00, 0x1F},
                                                {0x7F, 0x9F},
                                                {0x061C, 0x061C},
                                                {0x200E, 0x200F},
                                                {0x2028, 0x202E},
                                                {0x2066, 0x2069},
                                                {0xFEFF, 0xFEFF},
                                                {0xFFF9, 0xFFFB},
                                                {0x206A, 0x206F},
                                                {0xE0000, 0xE0FFF}}};
  return is_in(code, kEscaped);
}

std::string escape(const char* format, uint32_t code) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(code));
  return buffer;
}

std::string escaped(uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x80 ? escape("\\x%02x", code) : code < 0x10000 ? escape("\\u%04x", code) : escape("\\U%08x", code);
  }
}

// How many bytes the character at the beginning of `text` has; 0: they are not UTF-8.
size_t character_bytes(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(4, text.size()); ++bytes) {
    if (is_utf8(text.substr(0, bytes))) return bytes;
  }
  return 0;
}

uint32_t decoded(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  uint32_t code = character.size() == 1 ? first : first & (0x7Fu >> character.size());
  for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return code;
}

}  // namespace

std::vector<Glyph> glyphs_of(std::string_view text) {
  std::vector<Glyph> glyphs;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = character_bytes(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    const uint32_t code = bytes == 0 ? byte : decoded(text.substr(i, bytes));
    const std::string shown = bytes == 0 ? escape("\\x%02x", byte) : is_escaped(code) ? escaped(code) : std::string();
    glyphs.push_back(shown.empty() ? Glyph{std::string(text.substr(i, bytes)), is_wide(code) ? 2u : 1u, code}
                                   : Glyph{shown, shown.size(), code});
    i += std::max<size_t>(bytes, 1);
  }
  return glyphs;
}

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  for (const Glyph& glyph : glyphs_of(text)) {
    const bool kept = lines == Lines::kKept && (glyph.text == "\\n" || glyph.text == "\\t");
    out += kept ? std::string(1, static_cast<char>(glyph.code)) : glyph.text;
  }
  return out;
}

size_t printed_width(std::string_view text) {
  size_t width = 0;
  for (const Glyph& glyph : glyphs_of(text)) width += glyph.width;
  return width;
}

std::string shortened(std::string_view text, size_t width) {
  constexpr std::string_view kCut = "...";
  std::string out;
  size_t used = 0, fits = 0;  // cells; bytes of `out` beside which the mark of the cut has room
  for (const Glyph& glyph : glyphs_of(text)) {
    if (used + kCut.size() <= width) fits = out.size();
    if (used + glyph.width > width) return out.substr(0, fits) + std::string(kCut.substr(0, std::min(width, kCut.size())));
    out += glyph.text;
    used += glyph.width;
  }
  return out;
}

}  // namespace sluice
