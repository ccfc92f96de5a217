#include "nodes/scorers/math/number_sign.h"

#include <algorithm>
#include <array>

#include "base/text/strings.h"
#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr std::string_view kNoOperands = "=([{:,;<>/^&|+-";
constexpr std::array<std::string_view, 13> kVerbs{"is",  "are",  "was",   "be",     "equals",  "equal", "to",
                                                  "get", "gets", "gives", "yields", "becomes", "by"};

bool is_sign(char c) { return c == '-' || c == '+'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

char before(std::string_view text, size_t end) { return end == 0 ? '\0' : text[end - 1]; }

// The end of what is before the blanks in front of `end`.
size_t skip_blanks_back(std::string_view text, size_t end) {
  while (end > 0 && is_blank(text[end - 1])) --end;
  return end;
}

// Whether the word or command in front of `end` asks for a number.
bool asks_for_number(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  if (before(text, begin) == '\\') return !is_value_command(text.substr(begin - 1));
  const std::string word = small_letters(std::string(text.substr(begin, end - begin)));
  return std::ranges::find(kVerbs, word) != kVerbs.end();
}

// **5** ends with emphasis, 2 * does not.
size_t skip_emphasis_back(std::string_view text, size_t end) {
  size_t begin = end;
  while (before(text, begin) == '*') --begin;
  return begin == 0 || is_blank(text[begin - 1]) ? end : begin;
}

// Whether nothing that could be subtracted from is before a minus at `at`, which has a blank after it.
bool lacks_operand(std::string_view text, size_t at) {
  const size_t blanks_end = skip_blanks_back(text, at);
  const bool first_of_line = text.substr(blanks_end, at - blanks_end).find('\n') != std::string_view::npos;
  const size_t end = skip_emphasis_back(text, blanks_end);
  const char left = before(text, end);
  if (end == 0 || left == '=') return true;
  if (first_of_line) return false;  // an item of a list
  if (left == '*') return true;
  if (left == '$') return end == 1 || is_blank(text[end - 2]) || kNoOperands.find(text[end - 2]) != std::string_view::npos;
  return is_letter(left) ? asks_for_number(text, end) : kNoOperands.find(left) != std::string_view::npos;
}

// Of what is directly before a sign.
bool is_operand_end(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || is_sign(c) || c == ')' || c == ']' || c == '}' || c == '%';
}

}  // namespace

Sign sign_before(std::string_view text, size_t at) {
  size_t begin = at;
  char sign = '\0';
  const auto take_sign = [&] {
    if (sign == '\0' && is_sign(before(text, begin))) sign = text[--begin];
  };
  take_sign();
  const bool currency = before(text, begin) == '$';
  if (currency) --begin;
  take_sign();
  if (sign == '\0') {
    const size_t end = skip_blanks_back(text, begin);
    if (end < begin && before(text, end) == '-' && lacks_operand(text, end - 1)) return {.negative = true, .begin = end - 1};
    return {.begin = begin};
  }
  const char left = before(text, begin);
  if (!currency && is_letter(left)) return {.part_of_name = true, .begin = begin};
  return {.negative = sign == '-' && !is_operand_end(left), .begin = begin};
}

}  // namespace sluice::nodes
