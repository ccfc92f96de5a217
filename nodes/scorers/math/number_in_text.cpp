#include "nodes/scorers/math/number_in_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "nodes/scorers/math/magnitude.h"
#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/math/number_sign.h"
#include "nodes/scorers/math/unit_text.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// 1.2.3, 1/2/25 and 12:30 go on so.
bool goes_on(std::string_view rest) {
  return rest.size() > 1 && (rest[0] == '.' || rest[0] == '/' || rest[0] == ':') && is_digit(rest[1]);
}

// What follows makes another thing of the number: a version, a date, a time, a power, a factor.
bool is_spoiled_by(std::string_view rest) {
  if (goes_on(rest)) return true;
  if (rest.starts_with('_')) return true;
  if (begins_with_variable(rest)) return true;
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

// 3 *, but not the emphasis of **5**.
bool ends_with_product(std::string_view before) {
  const size_t last = before.find_last_not_of(kBlanks);
  return last != std::string_view::npos && before[last] == '*' && (last == 0 || before[last - 1] != '*');
}

// Goes through a text from left to right and reads every number on its way.
class NumberScan {
 public:
  explicit NumberScan(std::string_view text) : text_(text) {
    while (at_ < text_.size()) {
      if (starts_number())
        take_number();
      else
        skip();
    }
  }

  const std::optional<NumberInText>& last() const { return last_; }

  /// It is the only number, and nothing else has digits that are not those of a name.
  bool is_single() const { return last_ && count_ == 1 && !other_digits_; }

  std::string_view before_last() const { return text_.substr(0, begin_); }
  std::string_view behind_last() const { return text_.substr(end_); }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void go_to(std::string_view rest) { at_ = static_cast<size_t>(rest.data() - text_.data()); }

  bool starts_number() const {
    const std::string_view here = rest();
    if (is_digit(here[0]) || command_at(here) == kFraction) return true;
    const bool after_word = at_ > 0 && (is_word(text_[at_ - 1]) || text_[at_ - 1] == ')');
    return here.size() > 1 && here[0] == '.' && is_digit(here[1]) && !after_word;
  }

  void take_number() {
    const Sign sign = sign_before(text_, at_);
    std::string_view here = rest();
    auto value = take_magnitude(here);
    if (is_spoiled_by(here) || (is_power_of_ten(here) && ends_with_product(text_.substr(0, sign.begin)))) value.reset();
    if (goes_on(here)) here.remove_prefix(std::min(here.find_first_not_of("./:0123456789"), here.size()));
    const bool percent = take_percent(here);
    go_to(here);
    if (sign.part_of_name) return;
    if (!value) return void(other_digits_ = true);
    last_ = NumberInText{sign.negative ? -*value : *value, percent};
    begin_ = sign.begin, end_ = at_, ++count_;
  }

  // What was taken up to `behind` has an exponent, so that it is a factor of what stands before a sign of multiplication.
  bool is_power_of_ten(std::string_view behind) const {
    return text_.substr(at_, text_.size() - behind.size() - at_).starts_with("10^");
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
      if (here[0] == '^') skip_argument();
      if (here[0] == '_') skip_index();
    }
  }

  // What a command or an exponent is applied to.
  void skip_argument() {
    const size_t from = at_;
    skip_index();
    other_digits_ = other_digits_ || std::ranges::any_of(text_.substr(from, at_ - from), is_digit);
  }

  void skip_index() {
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
  size_t begin_ = 0, end_ = 0;  // of the last
  size_t count_ = 0;
  bool other_digits_ = false;
};

// Whether an operator makes a number a part of something: x - 3, 3!, but not = 5.
bool ends_with_operator(std::string_view before) {
  const size_t last = before.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) return false;
  return ends_with_product(before) || std::string_view("+-/^|").find(before[last]) != std::string_view::npos;
}

bool begins_with_operator(std::string_view behind) {
  const std::string_view rest = without_blanks(behind);
  if (rest.starts_with('*')) return !rest.starts_with("**");
  return !rest.empty() && std::string_view("+-/^=|!:").find(rest[0]) != std::string_view::npos;
}

// <answer> and </b> are tags.
bool has_relation(std::string_view text) {
  constexpr std::array<std::string_view, 8> kRelations{"\\le", "\\leq", "\\lt", "\\ge", "\\geq", "\\gt", "\\ne", "\\neq"};
  bool in_tag = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const bool opens_tag = rest[0] == '<' && rest.size() > 1 && (is_letter(rest[1]) || rest[1] == '/');
    if (std::ranges::find(kRelations, command_at(rest)) != kRelations.end()) return true;
    if ((rest[0] == '<' && !opens_tag) || (rest[0] == '>' && !in_tag)) return true;
    in_tag = opens_tag || (in_tag && (is_letter(rest[0]) || rest[0] == '/'));
  }
  return false;
}

// (1), but not (1)(2).
bool is_parenthesized(std::string_view text) {
  return text.size() > 2 && text.starts_with('(') && text.find_first_of("()", 1) == text.size() - 1 && text.ends_with(')');
}

std::string_view without_decoration(std::string_view text) {
  constexpr std::string_view kBefore = " \t\r\n\v\f$*\"'`", kBehind = " \t\r\n\v\f$*\"'`.,;:?";
  constexpr int kMostLayers = 8;  // of braces
  for (int layer = 0; layer < kMostLayers; ++layer) {
    text.remove_prefix(std::min(text.find_first_not_of(kBefore), text.size()));
    text.remove_suffix(text.size() - (text.find_last_not_of(kBehind) + 1));  // npos + 1 is 0
    const Braces braces = braces_at(text);
    const bool in_braces = braces.closed && braces.length == text.size();
    if (!in_braces && !is_parenthesized(text)) break;
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

}  // namespace

std::optional<NumberInText> last_number(std::string_view text) { return NumberScan(text).last(); }

std::optional<NumberInText> single_number(std::string_view text) {
  const NumberScan scan(text);
  if (!scan.is_single() || has_relation(text)) return std::nullopt;
  if (ends_with_operator(scan.before_last()) || begins_with_operator(scan.behind_last())) return std::nullopt;
  return scan.last();
}

std::optional<NumberInText> whole_number(std::string_view text) {
  text = without_decoration(right_side(without_decoration(text)));
  const bool negative = take_sign_and_currency(text);
  const auto value = take_magnitude(text);
  if (!value || is_spoiled_by(text)) return std::nullopt;
  const bool percent = take_percent(text);
  if (!is_unit(text)) return std::nullopt;
  return NumberInText{negative ? -*value : *value, percent};
}

}  // namespace sluice::nodes
