#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// One character as a terminal shows it. `text` never steers a terminal.
struct Glyph {
  std::string text;
  size_t width = 1;   // cells that it takes
  uint32_t code = 0;  // the code point; of a byte that belongs to none: the byte
};

/// The characters of `text`, which comes from a file or a model and may hold anything. What could steer a terminal or show
/// something else than what is there is written as an escape: control characters (\n, \t, \x1b, and C1 as \u0085), marks that
/// change the direction of writing, line separators and invisible tags (\u202e), and bytes that are not UTF-8 (\xff).
std::vector<Glyph> glyphs_of(std::string_view text);

enum class Lines { kEscaped, kKept };

/// `text` as glyphs_of() has it. With Lines::kKept line ends and tabs stay what they are. Text without anything of that kind
/// comes back as it is; a backslash stays a backslash, so this is to be read by people and not by programs.
std::string printable(std::string_view text, Lines lines = Lines::kEscaped);

/// The cells that printable(text) takes.
size_t printed_width(std::string_view text);

/// printable(text) in at most `width` cells; what is cut off is replaced by "...".
std::string shortened(std::string_view text, size_t width);

}  // namespace sluice
