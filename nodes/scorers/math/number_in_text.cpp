#include "nodes/scorers/math/number_in_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr size_t kMostDigits = 400;
constexpr std::string_view kFraction = "\\frac";
constexpr std::string_view kUnitLetters = "ghlmsACFJKLNVW";
constexpr std::string_view kBlanks = " \t\r\n\v\f";

// Commands that are a value, or make one of what follows: a number beside them is a factor.
constexpr std::array<std::string_view, 28> kValues{"\\frac",  "\\sqrt",  "\\pi",    "\\ln",    "\\log", "\\exp",    "\\sin",
                                                   "\\cos",   "\\tan",   "\\infty", "\\div",   "\\pm",  "\\mp",     "\\alpha",
                                                   "\\beta",  "\\gamma", "\\delta", "\\theta", "\\phi", "\\lambda", "\\mu",
                                                   "\\sigma", "\\omega", "\\rho",   "\\binom", "\\cot", "\\sec",    "\\csc"};

bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

bool is_value_command(std::string_view text) { return std::ranges::find(kValues, command_at(text)) != kValues.end(); }

// The one-letter word at the front of `text`, or 0.
char single_letter(std::string_view text) {
  if (text.empty() || !is_letter(text[0]) || (text.size() > 1 && is_letter(text[1]))) return 0;
  return text[0];
}

// ^2, but not the degrees of ^\circ.
bool is_power(std::string_view text) {
  return text.starts_with('^') && !text.starts_with("^\u00b0") && !text.starts_with("^{\u00b0");
}

bool is_proper(const Rational& fraction) { return fraction.above < fraction.below; }

std::optional<Rational> quotient(const Rational& above, const Rational& below) {
  if (below.above.is_zero()) return std::nullopt;
  return above / below;
}

// A signed decimal and nothing else.
std::optional<Rational> simple_number(std::string_view text) {
  text = without_blanks(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::string whole = take_integer(text);
  const std::string_view decimals = take_decimals(text);
  const size_t digits = whole.size() + decimals.size();
  if (digits == 0 || digits > kMostDigits || !without_blanks(text).empty()) return std::nullopt;
  const Rational value = Rational::decimal(whole + std::string(decimals), static_cast<int64_t>(decimals.size()));
  return negative ? -value : value;
}

// {3} or the 3 of \frac34, and what is left of the text behind it.
std::string_view take_argument(std::string_view& text) {
  text = without_blanks(text);
  const Braces braces = braces_at(text);
  const std::string_view inside = braces.closed       ? text.substr(1, braces.length - 2)
                                  : braces.length > 0 ? std::string_view()
                                                      : text.substr(0, 1);
  text.remove_prefix(std::max(braces.length, inside.size()));
  return inside;
}

// \frac{3}{4}; of one whose parts are no numbers everything is taken.
std::optional<Rational> take_fraction_command(std::string_view& text) {
  text.remove_prefix(kFraction.size());
  const auto above = simple_number(take_argument(text));
  const auto below = simple_number(take_argument(text));
  return above && below ? quotient(*above, *below) : std::nullopt;
}

// The 10^8 of 1.5 * 10^{8}.
std::optional<int64_t> take_power_of_ten(std::string_view& text) {
  std::string_view rest = without_blanks(text);
  if (!rest.starts_with('*') && !rest.starts_with('x')) return std::nullopt;
  rest = without_blanks(rest.substr(1));
  if (!rest.starts_with("10^")) return std::nullopt;
  rest.remove_prefix(3);
  const bool braces = rest.starts_with('{');
  if (braces) rest.remove_prefix(1);
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  if (digits.empty() || digits.size() > 4 || (braces && !rest.starts_with('}'))) return std::nullopt;
  text = rest.substr(braces ? 1 : 0);
  const int64_t exponent = std::stoll(std::string(digits));
  return negative ? -exponent : exponent;
}

// The fraction of a mixed number, behind its integer.
std::optional<Rational> take_mixed(std::string_view& text) {
  std::string_view rest = without_blanks(text);
  std::optional<Rational> fraction;
  if (command_at(rest) == kFraction) {
    fraction = take_fraction_command(rest);
  } else if (text.size() > 1 && text[0] == ' ' && is_digit(text[1])) {
    const std::string above(take_digits(rest));
    if (!rest.starts_with('/')) return std::nullopt;
    rest.remove_prefix(1);
    const std::string below(take_digits(rest));
    if (std::max(above.size(), below.size()) > kMostDigits) return std::nullopt;
    fraction = quotient(Rational::decimal(above, 0), Rational::decimal(below, 0));
  }
  if (!fraction || fraction->negative || fraction->above.is_zero() || !is_proper(*fraction)) return std::nullopt;
  text = rest;
  return fraction;
}

// A number without its sign; takes at least its first digits also where it is none.
std::optional<Rational> take_magnitude(std::string_view& text) {
  if (command_at(text) == kFraction) return take_fraction_command(text);
  const std::string whole = take_integer(text);
  const std::string_view decimals = take_decimals(text);
  const size_t digits = whole.size() + decimals.size();
  if (digits == 0 || digits > kMostDigits) return std::nullopt;

  const auto scale = static_cast<int64_t>(decimals.size());
  int64_t exponent = take_exponent(text);
  if (exponent == 0) exponent = take_power_of_ten(text).value_or(0);
  if (std::abs(exponent) > kLargestExponent) return std::nullopt;
  const Rational value = Rational::decimal(whole + std::string(decimals), scale - exponent);
  if (exponent != 0 || scale != 0) return value;

  if (const auto fraction = take_mixed(text)) return value + *fraction;
  const std::string denominator = take_denominator(text);
  if (denominator.empty()) return value;
  if (denominator.size() > kMostDigits) return std::nullopt;
  return quotient(value, Rational::decimal(denominator, 0));
}

// What follows makes another thing of the number: a version, a date, a power, a factor.
bool is_spoiled_by(std::string_view rest) {
  if (rest.size() > 1 && (rest[0] == '.' || rest[0] == '/') && is_digit(rest[1])) return true;
  if (rest.starts_with('_')) return true;
  const char letter = single_letter(rest);
  if (letter != 0 && kUnitLetters.find(letter) == std::string_view::npos) return true;
  rest = without_blanks(rest);
  if (is_power(rest)) return true;
  return is_value_command(rest);
}

bool take_percent(std::string_view& text) {
  const std::string_view rest = without_blanks(text);
  for (const std::string_view word : {"%", "percent", "per cent"}) {
    if (!rest.starts_with(word)) continue;
    text = rest.substr(word.size());
    return true;
  }
  return false;
}

struct Sign {
  bool negative = false;
  bool part_of_name = false;  // GPT-4
};

// The sign of a number that begins at `at`, with a currency sign before or behind it.
Sign sign_before(std::string_view text, size_t at) {
  const auto before = [&](size_t end) { return end == 0 ? '\0' : text[end - 1]; };
  const auto is_sign = [](char c) { return c == '-' || c == '+'; };
  size_t begin = at;
  bool negative = false, is_signed = false;
  const auto take_sign = [&] {
    if (is_signed || !is_sign(before(begin))) return;
    is_signed = true;
    negative = before(begin) == '-';
    --begin;
  };
  take_sign();
  const bool currency = before(begin) == '$';
  if (currency) --begin;
  take_sign();
  if (!is_signed) return {};
  const char left = before(begin);
  if (!currency && is_letter(left)) return {.part_of_name = true};
  const bool subtracts = is_word(left) || is_sign(left) || left == ')' || left == ']' || left == '}' || left == '%';
  return {.negative = negative && !subtracts};
}

// Goes through a text from left to right and reads every number on its way.
class NumberScan {
 public:
  explicit NumberScan(std::string_view text) : text_(text) {}

  std::optional<NumberInText> last() {
    while (at_ < text_.size()) {
      if (starts_number()) {
        if (auto number = take_number()) last_ = std::move(number);
      } else {
        skip();
      }
    }
    return last_;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void go_to(std::string_view rest) { at_ = static_cast<size_t>(rest.data() - text_.data()); }

  bool starts_number() const {
    const std::string_view here = rest();
    if (is_digit(here[0]) || command_at(here) == kFraction) return true;
    const bool after_word = at_ > 0 && (is_word(text_[at_ - 1]) || text_[at_ - 1] == ')');
    return here.size() > 1 && here[0] == '.' && is_digit(here[1]) && !after_word;
  }

  std::optional<NumberInText> take_number() {
    const Sign sign = sign_before(text_, at_);
    std::string_view here = rest();
    auto value = take_magnitude(here);
    if (is_spoiled_by(here) || sign.part_of_name) value.reset();
    if (here.size() > 1 && (here[0] == '.' || here[0] == '/') && is_digit(here[1])) {
      here.remove_prefix(std::min(here.find_first_not_of("./0123456789"), here.size()));
    }
    const bool percent = take_percent(here);
    go_to(here);
    if (!value) return std::nullopt;
    return NumberInText{sign.negative ? -*value : *value, percent};
  }

  // A word, a command with what it is applied to, an exponent or index, or one character.
  void skip() {
    const std::string_view here = rest();
    if (is_letter(here[0])) {
      const auto end = std::ranges::find_if_not(here, is_word);
      at_ += static_cast<size_t>(end - here.begin());
    } else if (here[0] == '\\') {
      const bool value = is_value_command(here);
      at_ += std::max<size_t>(command_at(here).size(), 1);
      if (value) skip_argument();
    } else {
      ++at_;
      if (here[0] == '^' || here[0] == '_') skip_argument();
    }
  }

  void skip_argument() {
    std::string_view here = without_blanks(rest());
    const size_t braces = braces_at(here).length;
    here.remove_prefix(braces);
    if (braces == 0) {
      if (here.starts_with('-')) here.remove_prefix(1);
      take_digits(here);
    }
    go_to(here);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<NumberInText> last_;
};

std::string_view without_decoration(std::string_view text) {
  constexpr std::string_view kBefore = " \t\r\n\v\f$*\"'`", kBehind = " \t\r\n\v\f$*\"'`.,;:!?";
  constexpr int kMostLayers = 8;  // of braces
  for (int layer = 0; layer < kMostLayers; ++layer) {
    text.remove_prefix(std::min(text.find_first_not_of(kBefore), text.size()));
    text.remove_suffix(text.size() - (text.find_last_not_of(kBehind) + 1));  // npos + 1 is 0
    const Braces braces = braces_at(text);
    if (!braces.closed || braces.length != text.size()) break;
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

// x = 5 and 2 + 2 + 1 = 4 + 1 = 5, but not x = 5, y = 6.
std::string_view right_side(std::string_view text) {
  const size_t last = text.rfind('=');
  if (last == std::string_view::npos) return text;
  const std::string_view left = text.substr(0, last);
  const bool several = left.find('=') != std::string_view::npos && left.find_first_of(",;") != std::string_view::npos;
  return several ? std::string_view() : text.substr(last + 1);
}

// The exponent of a unit: m2, m^2, s^{-1}.
bool is_unit_exponent(std::string_view rest, size_t at) {
  while (at > 0 && (rest[at - 1] == '^' || rest[at - 1] == '{' || rest[at - 1] == '-')) --at;
  return at > 0 && (is_letter(rest[at - 1]) || rest[at - 1] == '}');
}

bool is_unit(std::string_view rest) {
  const size_t first = rest.find_first_not_of(" \t\r\n\v\f{}()");
  if (first == std::string_view::npos) return true;
  if (is_power(rest.substr(first))) return false;
  const char letter = single_letter(rest.substr(first));
  if (letter != 0 && kUnitLetters.find(letter) == std::string_view::npos) return false;
  for (size_t i = first; i < rest.size(); ++i) {
    const char c = rest[i];
    if (is_digit(c) && !is_digit(rest[i - (i > 0)]) && !is_unit_exponent(rest, i)) return false;
    if (c == '-' && (i == 0 || (!is_letter(rest[i - 1]) && rest[i - 1] != '^' && rest[i - 1] != '{'))) return false;
    if (std::string_view("\\=<>+*").find(c) != std::string_view::npos) return false;
  }
  return true;
}

bool take_sign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text = without_blanks(text.substr(1));
  return negative;
}

}  // namespace

std::optional<NumberInText> last_number(std::string_view text) { return NumberScan(text).last(); }

std::optional<NumberInText> whole_number(std::string_view text) {
  text = without_decoration(right_side(without_decoration(text)));
  bool negative = take_sign(text);
  if (text.starts_with('$')) {
    text = without_blanks(text.substr(1));
    if (!negative) negative = take_sign(text);
  }
  const auto value = take_magnitude(text);
  if (!value || is_spoiled_by(text)) return std::nullopt;
  const bool percent = take_percent(text);
  if (!is_unit(text)) return std::nullopt;
  return NumberInText{negative ? -*value : *value, percent};
}

}  // namespace sluice::nodes
