#include "text/tokenizer/character_steps.h"

#include <algorithm>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr char32_t kDropped = 0x110000;  // what a step gives for a character that it leaves out

template <class Change>
std::string changed_one_by_one(std::string_view text, bool& is_first, Change change) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    const char32_t changed = change(c.value);
    if (changed == c.value) {
      result += text.substr(i, c.length);
    } else if (changed != kDropped) {
      append_utf8(changed, result);
    } else if (i == 0) {
      is_first = false;
    }
    i += c.length;
  }
  return result;
}

struct CharacterRange {
  char32_t first, last;
};

template <size_t count>
bool is_in(const CharacterRange (&ranges)[count], char32_t c) {
  return std::ranges::any_of(ranges, [c](const CharacterRange& range) { return range.first <= c && c <= range.last; });
}

constexpr CharacterRange kIdeographs[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                          {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
constexpr CharacterRange kNmtDropped[] = {{0x1, 0x8}, {0xB, 0xB}, {0xE, 0x1F}, {0x7F, 0x7F}, {0x8F, 0x8F}, {0x9F, 0x9F}};
constexpr CharacterRange kNmtBlanks[] = {{0x9, 0xA},       {0xC, 0xD},       {0x1680, 0x1680}, {0x200B, 0x200F},
                                         {0x2028, 0x2029}, {0x2581, 0x2581}, {0xFEFF, 0xFEFF}, {0xFFFD, 0xFFFD}};

}  // namespace

std::string without(std::string_view text, uint16_t classes, bool& is_first) {
  const auto& all = CodePointClasses::get();
  return changed_one_by_one(text, is_first, [&](char32_t c) { return all[c] & classes ? kDropped : c; });
}

std::string lower_cased(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    i += c.length;
    const auto [first, second] = lower_case(c.value);
    append_utf8(first, lower);
    if (second) append_utf8(second, lower);
  }
  return lower;
}

std::string cleaned_for_bert(std::string_view text, bool& is_first) {
  const auto& all = CodePointClasses::get();
  return changed_one_by_one(text, is_first, [&](char32_t c) {
    if (all[c] & code_point_class::kBertControl) return kDropped;
    return all[c] & code_point_class::kSpace ? U' ' : c;
  });
}

std::string spaced_ideographs(std::string_view text) {
  std::string spaced;
  spaced.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text.data() + i);
    const std::string_view character = text.substr(i, c.length);
    const bool is_ideograph = c.value >= 0x3400 && is_in(kIdeographs, c.value);
    if (is_ideograph) spaced += ' ';
    spaced += character;
    if (is_ideograph) spaced += ' ';
    i += c.length;
  }
  return spaced;
}

std::string cleaned_for_nmt(std::string_view text, bool& is_first) {
  return changed_one_by_one(text, is_first, [](char32_t c) {
    if (is_in(kNmtDropped, c)) return kDropped;
    return is_in(kNmtBlanks, c) ? U' ' : c;
  });
}

}  // namespace sluice::text
