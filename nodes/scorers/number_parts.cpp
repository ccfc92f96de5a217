#include "nodes/scorers/number_parts.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

bool take_any(std::string_view& text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    return true;
  }
  return false;
}

}  // namespace

bool take_sign(std::string_view& text) {
  const bool negative = take_any(text, {"-", "\u2212"});
  if (!negative) take_any(text, {"+"});
  text = trim(text);
  return negative;
}

bool take_sign_and_currency(std::string_view& text) {
  const bool negative = take_sign(text);
  if (!take_any(text, {"\\$", "$", "\u20ac", "\u00a3", "\u00a5"})) return negative;
  text = trim(text);
  return negative || take_sign(text);
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

std::string take_integer(std::string_view& text) {
  std::string digits(take_digits(text));
  if (digits.empty() || digits.size() > 3) return digits;
  while (text.starts_with(',')) {
    std::string_view rest = text.substr(1);
    const std::string_view group = take_digits(rest);
    if (group.size() != 3) break;
    digits += group;
    text = rest;
  }
  return digits;
}

std::string_view take_decimals(std::string_view& text) {
  if (text.size() < 2 || text[0] != '.' || !is_digit(text[1])) return {};
  text.remove_prefix(1);
  return take_digits(text);
}

int64_t take_exponent(std::string_view& text) {
  if (text.empty() || (text.front() != 'e' && text.front() != 'E')) return 0;
  std::string_view rest = text.substr(1);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  if (digits.empty() || digits.size() > 4) return 0;
  text = rest;
  int64_t exponent = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  return negative ? -exponent : exponent;
}

std::string take_denominator(std::string_view& text) {
  std::string_view rest = trim(text);
  if (!rest.starts_with('/')) return {};
  rest = trim(rest.substr(1));
  std::string digits = take_integer(rest);
  if (!digits.empty()) text = rest;
  return digits;
}

}  // namespace sluice::nodes
