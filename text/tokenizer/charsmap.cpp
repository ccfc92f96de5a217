#include "text/tokenizer/charsmap.h"

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tokenizer/growth.h"
#include "text/unicode/graphemes.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr size_t kLongestGrapheme = 5;  // bytes, of those that are replaced as a whole
constexpr size_t kOneByteCharacters = 0x80;

uint32_t unit_at(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = sizeof value; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// A unit of the trie (Yata's Darts-clone): a label, the distance to the children, and whether one of these is a leaf.
uint32_t label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }
bool has_leaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t leaf_value(uint32_t unit) { return unit & ((1u << 31) - 1); }

bool is_one_byte(char byte) { return static_cast<unsigned char>(byte) < kOneByteCharacters; }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, std::string where) : where_(std::move(where)) {
  const auto fail = [this](const std::string& what) { throw UserError(where_ + ": the charsmap is malformed: " + what); };
  if (bytes.size() < sizeof(uint32_t)) fail("it has no size");
  const size_t size = unit_at(bytes);
  bytes.remove_prefix(sizeof(uint32_t));
  if (size == 0 || size % sizeof(uint32_t) != 0 || size > bytes.size())
    fail("a trie of " + std::to_string(size) + " bytes among " + std::to_string(bytes.size()));
  for (size_t i = 0; i < size; i += sizeof(uint32_t)) units_.push_back(unit_at(bytes.substr(i)));
  replacements_ = bytes.substr(size);
  if (!is_utf8(replacements_)) fail("the replacements are not UTF-8");
  for (size_t byte = 0; byte < kOneByteCharacters; ++byte) of_ascii_.push_back(find(std::string(1, static_cast<char>(byte))));
}

// Calls `on_found` for each string that `text` begins with, shortest first, until it returns false.
template <class OnFound>
void Charsmap::find_all(std::string_view text, OnFound on_found) const {
  uint32_t position = offset(units_[0]);
  for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    position ^= byte;
    if (position >= units_.size() || label(units_[position]) != byte) return;
    const uint32_t unit = units_[position];
    position ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (position >= units_.size() || !on_found(Found{leaf_value(units_[position]), i + 1})) return;
  }
}

// Where the replacement of the shortest string that `text` begins with begins, or kNone.
uint32_t Charsmap::find(std::string_view text) const {
  uint32_t shortest = kNone;
  find_all(text, [&shortest](const Found& found) {
    shortest = found.replacement;
    return false;
  });
  return shortest;
}

std::string_view Charsmap::replacement(uint32_t begin) const {
  if (begin > replacements_.size() || (begin < replacements_.size() && is_continuation(replacements_[begin])))
    throw UserError(where_ + ": the charsmap is malformed: no replacement begins at " + std::to_string(begin));
  return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
}

// Appends what is written for `part` of a text of `size` bytes.
void Charsmap::write(std::string_view part, uint32_t found, size_t size, std::string& result) const {
  result += found == kNone ? part : replacement(found);
  check_growth(size, result.size(), where_);
}

std::string Charsmap::apply(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const bool is_alone =
        is_one_byte(text[begin]) && text[begin] != '\r' && (begin + 1 == text.size() || is_one_byte(text[begin + 1]));
    if (is_alone) {
      write(text.substr(begin, 1), of_ascii_[static_cast<unsigned char>(text[begin])], text.size(), result);
      ++begin;
      continue;
    }
    const size_t end = grapheme_end(text, begin);
    const std::string_view grapheme = text.substr(begin, end - begin);
    const uint32_t found = grapheme.size() <= kLongestGrapheme ? find(grapheme) : kNone;
    if (found != kNone) write(grapheme, found, text.size(), result);
    for (size_t i = 0; found == kNone && i < grapheme.size();) {
      const std::string_view character = grapheme.substr(i, code_point_at(grapheme.data() + i).length);
      write(character, find(character), text.size(), result);
      i += character.size();
    }
    begin = end;
  }
  return result;
}

std::string Charsmap::apply_longest(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    Found longest{kNone, code_point_at(text.data() + begin).length};
    find_all(text.substr(begin), [&](const Found& found) {
      const size_t end = begin + found.length;
      if (end == text.size() || !is_continuation(text[end])) longest = found;  // a malformed map may cut a character
      return true;
    });
    write(text.substr(begin, longest.length), longest.replacement, text.size(), result);
    begin += longest.length;
  }
  return result;
}

}  // namespace sluice::text
