#include "text/unicode/regex_properties.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "text/unicode/unicode.h"

namespace sluice::text {
namespace {

#include "text/unicode/unicode_categories.inc"

constexpr size_t kMostProperties = 32;  // each may become 10 kB

// Bit n: category n of the table.
constexpr uint32_t kUpper = 1 << 1, kLower = 1 << 2, kTitle = 1 << 3, kModifier = 1 << 4, kOtherLetter = 1 << 5;
constexpr uint32_t kAnyMark = 1 << 6, kDecimal = 1 << 7, kOtherNumber = 1 << 8, kPunctuationMarks = 1 << 9, kSymbols = 1 << 10;

constexpr std::pair<std::string_view, uint32_t> kNames[] = {
    {"L", kUpper | kLower | kTitle | kModifier | kOtherLetter},
    {"Lu", kUpper},
    {"Ll", kLower},
    {"Lt", kTitle},
    {"Lm", kModifier},
    {"Lo", kOtherLetter},
    {"M", kAnyMark},
    {"N", kDecimal | kOtherNumber},
    {"Nd", kDecimal},
    {"P", kPunctuationMarks},
    {"S", kSymbols},
};

// A property as it stands in a pattern.
struct Property {
  size_t length = 0;        // of its text
  uint32_t categories = 0;  // none: \w
  bool negated = false;
};

std::optional<Property> property_at(std::string_view text) {
  if (text.size() < 2 || text[0] != '\\') return std::nullopt;
  if (text[1] == 'w' || text[1] == 'W') return Property{2, 0, text[1] == 'W'};
  if (text[1] == 'd' || text[1] == 'D') return Property{2, kDecimal, text[1] == 'D'};
  if ((text[1] != 'p' && text[1] != 'P') || text.size() < 3 || text[2] != '{') return std::nullopt;
  const size_t end = text.find('}');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view name = text.substr(3, end - 3);
  bool negated = text[1] == 'P';
  if (name.starts_with('^')) {
    negated = !negated;
    name.remove_prefix(1);
  }
  for (const auto& [known, categories] : kNames) {
    if (name == known) return Property{end + 1, categories, negated};
  }
  return std::nullopt;
}

void append_range(char32_t first, char32_t last, std::string& text) {
  char range[32];
  std::snprintf(range, sizeof range, "\\x{%X}-\\x{%X}", static_cast<unsigned>(first), static_cast<unsigned>(last));
  text += range;
}

void append_categories(uint32_t categories, std::string& text) {
  for (size_t i = 0; i < std::size(kCategoryRuns); ++i) {
    const uint32_t run = kCategoryRuns[i];
    if (!(categories >> (run & 15) & 1)) continue;
    while (i + 1 < std::size(kCategoryRuns) && (categories >> (kCategoryRuns[i + 1] & 15) & 1)) ++i;
    append_range(run >> 4, i + 1 < std::size(kCategoryRuns) ? (kCategoryRuns[i + 1] >> 4) - 1 : kCodePoints - 1, text);
  }
}

// The package's two regex engines agree on \w but for these.
bool is_word(char32_t c) {
  if (c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE)) return true;
  if (c == 0x200C || c == 0x200D) return false;
  return CodePointClasses::get()[c] & code_point_class::kWord;
}

void append_words(std::string& text) {
  for (char32_t c = 0; c < kCodePoints; ++c) {
    if (!is_word(c)) continue;
    const char32_t first = c;
    while (c + 1 < kCodePoints && is_word(c + 1)) ++c;
    append_range(first, c, text);
  }
}

void append_class(const Property& property, std::string& text) {
  text += property.negated ? "[^" : "[";
  property.categories ? append_categories(property.categories, text) : append_words(text);
  text += "]";
}

}  // namespace

std::string with_fixed_properties(std::string_view pattern) {
  std::string fixed;
  size_t count = 0;
  for (size_t i = 0; i < pattern.size();) {
    if (const auto property = property_at(pattern.substr(i))) {
      if (++count > kMostProperties) return std::string(pattern);
      append_class(*property, fixed);
      i += property->length;
    } else {
      const size_t length =
          pattern[i] == '\\' ? std::min<size_t>(2, pattern.size() - i) : 1;  // an escaped backslash escapes nothing
      fixed += pattern.substr(i, length);
      i += length;
    }
  }
  return fixed;
}

}  // namespace sluice::text
