#include "text/tokenizer/word_scanner.h"

#include <array>
#include <cstdint>

#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

using namespace code_point_class;

constexpr uint16_t kKinds = kLetter | kNumber | kSpace;  // a sign is none of them
constexpr char32_t kLongS = 0x17F;                       // lower case folding makes it an s

// One pass over one text. Positions are bytes.
class Cursor {
 public:
  Cursor(std::string_view text, const CodePointClasses& classes) : text_(text), classes_(classes) {}

  bool at_end(size_t i) const { return i == text_.size(); }
  bool is(size_t i, char c) const { return i < text_.size() && text_[i] == c; }
  bool is_line_end(size_t i) const { return is(i, '\n') || is(i, '\r'); }
  bool is_letter(size_t i) const { return i < text_.size() && (class_at(i) & kLetter); }
  bool is_number(size_t i) const { return i < text_.size() && (class_at(i) & kNumber); }
  bool is_sign(size_t i) const { return i < text_.size() && !(class_at(i) & kKinds); }
  size_t after(size_t i) const { return i + code_point_at(text_.data() + i).length; }

  // Where the code points of one kind end: those whose classes, masked with kKinds, are `kind`.
  size_t run_end(size_t i, uint16_t kind) const {
    while (i < text_.size()) {
      const CodePoint c = code_point_at(text_.data() + i);
      if ((classes_[c.value] & kKinds) != kind) break;
      i += c.length;
    }
    return i;
  }

  size_t numbers_end(size_t i, size_t most) const {
    for (; most > 0 && is_number(i); --most) i = after(i);
    return i;
  }

  size_t line_ends_end(size_t i) const {
    while (is_line_end(i)) ++i;
    return i;
  }

  // After the last line end among the white space from `begin` to `end`, or `begin`.
  size_t last_line_end(size_t begin, size_t end) const {
    while (end > begin && !is_line_end(end - 1)) --end;
    return end;
  }

  // White space from `begin` to `end`, all of it at the end of the text, else without its last character, which belongs to what
  // follows; a single one stays.
  size_t blanks_end(size_t begin, size_t end) const {
    if (at_end(end)) return end;
    const size_t last = end - last_code_point(text_.substr(begin, end - begin)).length;
    return last == begin ? end : last;
  }

  // After 's 't 're 've 'm 'll 'd at `i`, or `i`.
  size_t contraction_end(size_t i, bool any_case) const {
    if (!is(i, '\'') || i + 1 == text_.size()) return i;
    const char first = letter(i + 1, any_case), second = i + 2 < text_.size() ? letter(i + 2, any_case) : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return i + 3;
    if (any_case && static_cast<unsigned char>(first) >= 0x80 && code_point_at(text_.data() + i + 1).value == kLongS)
      return i + 3;
    return i;
  }

 private:
  uint16_t class_at(size_t i) const { return classes_[code_point_at(text_.data() + i).value]; }
  char letter(size_t i, bool any_case) const {
    const char c = text_[i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }

  std::string_view text_;
  const CodePointClasses& classes_;
};

size_t gpt2_word_end(const Cursor& text, size_t begin) {
  if (const size_t end = text.contraction_end(begin, false); end != begin) return end;
  const size_t word = text.is(begin, ' ') ? begin + 1 : begin;
  if (text.is_letter(word)) return text.run_end(word, kLetter);
  if (text.is_number(word)) return text.run_end(word, kNumber);
  if (text.is_sign(word)) return text.run_end(word, 0);
  return text.blanks_end(begin, text.run_end(begin, kSpace));
}

size_t llama3_word_end(const Cursor& text, size_t begin, size_t most_digits) {
  if (const size_t end = text.contraction_end(begin, true); end != begin) return end;
  if (text.is_letter(begin)) return text.run_end(begin, kLetter);
  if (text.is_number(begin)) return text.numbers_end(begin, most_digits);
  if (const size_t next = text.after(begin); !text.is_line_end(begin) && text.is_letter(next)) return text.run_end(next, kLetter);
  const size_t word = text.is(begin, ' ') ? begin + 1 : begin;
  if (text.is_sign(word)) return text.line_ends_end(text.run_end(word, 0));
  const size_t end = text.run_end(begin, kSpace);
  const size_t lines_end = text.last_line_end(begin, end);
  return lines_end != begin ? lines_end : text.blanks_end(begin, end);
}

}  // namespace

std::optional<WordScanner> WordScanner::for_pattern(std::string_view pattern) {
  if (pattern == kGpt2Pattern) return WordScanner(Rules::kGpt2, 0);
  if (pattern == kLlama3Pattern) return WordScanner(Rules::kLlama3, 3);
  if (pattern == kQwenPattern) return WordScanner(Rules::kLlama3, 1);
  return std::nullopt;
}

size_t WordScanner::word_end(std::string_view text, size_t begin) const {
  const Cursor cursor(text, *classes_);
  return rules_ == Rules::kGpt2 ? gpt2_word_end(cursor, begin) : llama3_word_end(cursor, begin, most_digits_);
}

}  // namespace sluice::text
