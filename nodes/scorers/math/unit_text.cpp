#include "nodes/scorers/math/unit_text.h"

#include <algorithm>

#include "nodes/scorers/math/number_words.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr std::string_view kUnitLetters = "ghlmsACFJKLNVW";

// The one-letter word at the front of `text`, or 0.
char single_letter(std::string_view text) {
  if (text.empty() || !is_letter(text[0]) || (text.size() > 1 && is_letter(text[1]))) return 0;
  return text[0];
}

// The exponent of a unit: m2, m^2, s^{-1}, {cm}^3.
bool is_unit_exponent(std::string_view rest, size_t at) {
  const size_t end = at;
  while (at > 0 && (rest[at - 1] == '^' || rest[at - 1] == '{' || rest[at - 1] == '-')) --at;
  return at > 0 && (is_letter(rest[at - 1]) || (rest[at - 1] == '}' && at < end && rest[at] == '^'));
}

// The sign of multiplication in {m}* {s}^{-1}.
bool is_between_units(std::string_view rest, size_t at) {
  const size_t last = rest.find_last_not_of(" {}", at - 1), next = rest.find_first_not_of(" {}", at + 1);
  const bool after_unit = at > 0 && last != std::string_view::npos && (is_letter(rest[last]) || is_unit_exponent(rest, last));
  return after_unit && next != std::string_view::npos && is_letter(rest[next]);
}

// 72 (seventy-two)
std::string_view without_remark(std::string_view rest) {
  const size_t open = rest.rfind('(');
  const bool remark = rest.ends_with(')') && open != std::string_view::npos && std::ranges::none_of(rest.substr(open), is_digit);
  return remark ? rest.substr(0, open) : rest;
}

}  // namespace

bool is_power(std::string_view text) {
  return text.starts_with('^') && !text.starts_with("^\u00b0") && !text.starts_with("^{\u00b0");
}

bool begins_with_variable(std::string_view text) {
  const char letter = single_letter(text);
  return letter != 0 && kUnitLetters.find(letter) == std::string_view::npos;
}

bool is_unit(std::string_view rest) {
  rest = without_remark(rest);
  if (joins_something(rest)) return false;
  const size_t first = rest.find_first_not_of(" \t\r\n\v\f{}()");
  if (first == std::string_view::npos) return true;
  if (is_power(rest.substr(first))) return false;
  if (begins_with_variable(rest.substr(first))) return false;
  for (size_t i = first; i < rest.size(); ++i) {
    const char c = rest[i];
    if (is_digit(c) && !is_digit(rest[i - (i > 0)]) && !is_unit_exponent(rest, i)) return false;
    if (c == '-' && (i == 0 || (!is_letter(rest[i - 1]) && rest[i - 1] != '^' && rest[i - 1] != '{'))) return false;
    if (c == '*' && is_between_units(rest, i)) continue;
    if (std::string_view("\\=<>+*!|").find(c) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace sluice::nodes
