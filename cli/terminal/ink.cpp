#include "cli/terminal/ink.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "base/text/printable.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// The first of them that is set decides, as in setlocale.
std::string locale_name() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return "C";
}

bool is_utf8_locale(const std::string& locale) {
  const std::string name = small_letters(locale);
  return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
}

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kBold:
      return "\033[1m";
    case Ink::kDim:
      return "\033[2m";
    case Ink::kGreen:
      return "\033[32m";
    case Ink::kYellow:
      return "\033[33m";
    case Ink::kRed:
      return "\033[31m";
    case Ink::kBlue:
      return "\033[36m";
  }
  return "";
}

// At most `width` of them, each the mean of its share.
std::vector<double> condensed(const std::vector<double>& values, size_t width) {
  if (values.size() <= width) return values;
  std::vector<double> means;
  for (size_t cell = 0; cell < width; ++cell) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(cell * values.size() / width);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>((cell + 1) * values.size() / width);
    means.push_back(std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

Abilities abilities_of(std::FILE* stream) {
  Abilities able;
  const std::string terminal = environment("TERM");
  able.cursor = ::isatty(::fileno(stream)) == 1 && !terminal.empty() && terminal != "dumb";
  able.colour = able.cursor && environment("NO_COLOR").empty();
  able.unicode = is_utf8_locale(locale_name());
  return able;
}

std::string inked(const std::string& text, Ink ink, bool colour) {
  return colour && ink != Ink::kPlain && !text.empty() ? code_of(ink) + text + "\033[0m" : text;
}

std::string fitted(const std::vector<Piece>& pieces, size_t width, bool colour) {
  std::string line;
  size_t used = 0;
  for (const Piece& piece : pieces) {
    std::string shown;
    for (const Glyph& glyph : glyphs_of(piece.text)) {
      if (used + glyph.width > width) return line + inked(shown, piece.ink, colour);
      shown += glyph.text;
      used += glyph.width;
    }
    line += inked(shown, piece.ink, colour);
  }
  return line;
}

std::string curve(const std::vector<double>& values, size_t width, bool unicode) {
  constexpr std::array<const char*, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<const char*, 8> kSigns{"_", ".", ",", "-", "~", "+", "*", "#"};
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  if (finite.size() < 2 || width == 0) return {};
  const std::vector<double> heights = condensed(finite, width);
  const auto [low, high] = std::ranges::minmax(heights);
  std::string text;
  for (const double height : heights) {
    const double share = high > low ? (height - low) / (high - low) : 0.5;
    const auto level = std::min<size_t>(kBars.size() - 1, static_cast<size_t>(share * static_cast<double>(kBars.size())));
    text += unicode ? kBars[level] : kSigns[level];
  }
  return text;
}

}  // namespace sluice::cli
