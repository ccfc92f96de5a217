#include "text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "base/text/utf8.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja::unicode {
namespace {

struct Interval {
  char32_t first, last;
};

struct Expansion {
  char32_t from;
  char32_t to[3];  // padded with 0
};

#include "text/jinja/unicode_tables.inc"

template <size_t N>
bool contains(const Interval (&table)[N], char32_t c) {
  const Interval* found =
      std::lower_bound(std::begin(table), std::end(table), c, [](const Interval& i, char32_t x) { return i.last < x; });
  return found != std::end(table) && found->first <= c;
}

// True when `c` was in the table; then its expansion is appended.
template <size_t N>
bool expand(const Expansion (&table)[N], char32_t c, std::string& out) {
  const Expansion* found =
      std::lower_bound(std::begin(table), std::end(table), c, [](const Expansion& e, char32_t x) { return e.from < x; });
  if (found == std::end(table) || found->from != c) return false;
  for (const char32_t part : found->to) {
    if (part != 0) append_utf8(part, out);
  }
  return true;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
char32_t simple_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  } else if (!expand(kLongUpper, c, out)) {
    append_utf8(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), out);
  }
}

void append_title(std::string& out, char32_t c) {
  if (!expand(kLongTitle, c, out)) append_utf8(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), out);
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }

bool is_case_ignorable(char32_t c) {
  constexpr char32_t kSingles[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                   0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kSingles), std::end(kSingles), c) != std::end(kSingles);
  }
}

// A capital sigma that ends a word is written differently in lower case (SpecialCasing, Final_Sigma).
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  constexpr int kLongest = 64;  // marks between it and its neighbours; more are no word
  bool letter_before = false;
  for (int i = 0; begin > 0 && i < kLongest; ++i) {
    const char32_t c = previous(text, begin);
    if (is_case_ignorable(c)) continue;
    letter_before = is_cased(c);
    break;
  }
  if (!letter_before) return false;
  for (int i = 0; end < text.size() && i < kLongest; ++i) {
    const char32_t c = next(text, end);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

// The lower case of the character `c` at bytes [begin, end) of `text`.
void append_lower(std::string& out, std::string_view text, size_t begin, size_t end, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\u0307";
  } else if (c == 0x3A3) {
    append_utf8(is_final_sigma(text, begin, end) ? 0x3C2 : 0x3C3, out);
  } else {
    append_utf8(simple_lower(c), out);
  }
}

}  // namespace

size_t length(std::string_view text) { return count_code_points(text); }

size_t offset_of(std::string_view text, size_t index) {
  size_t position = 0;
  for (; position < text.size(); ++position) {
    if (is_continuation(text[position])) continue;
    if (index-- == 0) break;
  }
  return position;
}

char32_t next(std::string_view text, size_t& position) {
  const CodePoint c = code_point_at(text.data() + position);
  position += c.length;
  return c.value;
}

char32_t previous(std::string_view text, size_t& end) {
  const CodePoint c = last_code_point(text.substr(0, end));
  end -= c.length;
  return c.value;
}

std::u32string decode(std::string_view text) {
  std::u32string characters;
  for (size_t i = 0; i < text.size();) characters += next(text, i);
  return characters;
}

std::string encode(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) append_utf8(c, text);
  return text;
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || contains(kOtherDigits, c); }

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) || contains(kOtherNumeric, c);
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || contains(kOtherUppercase, c); }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || contains(kOtherLowercase, c); }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_identifier_start(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || (c >= '0' && c <= '9')) return true;
  if (c < 0x80) return false;
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_PC;
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) append_upper(out, next(text, i));
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next(text, i);
    append_lower(out, text, begin, i, c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next(text, i);
    if (begin == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text, begin, i, c);
    }
  }
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next(text, i);
    if (in_word) {
      append_lower(out, text, begin, i, c);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = next(text, i);
    if (is_upper(c)) {
      append_lower(out, text, begin, i, c);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_utf8(c, out);
    }
  }
  return out;
}

std::string fold_case(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next(text, i);
    utf8proc_int32_t parts[8];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t k = 0; k < count && k < 8; ++k) append_utf8(static_cast<char32_t>(parts[k]), out);
  }
  return out;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t i = 0; left && i < end;) {
    if (!is_space(next(text, i))) break;
    begin = i;
  }
  for (size_t i = end; right && i > begin;) {
    if (!is_space(previous(text, i))) break;
    end = i;
  }
  return text.substr(begin, end - begin);
}

std::string_view strip(std::string_view text, std::u32string_view characters, bool left, bool right) {
  const auto strips = [&](char32_t c) { return characters.find(c) != std::u32string_view::npos; };
  size_t begin = 0, end = text.size();
  for (size_t i = 0; left && i < end;) {
    if (!strips(next(text, i))) break;
    begin = i;
  }
  for (size_t i = end; right && i > begin;) {
    if (!strips(previous(text, i))) break;
    end = i;
  }
  return text.substr(begin, end - begin);
}

}  // namespace sluice::text::jinja::unicode
