#include "text/jinja/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/text/strings.h"
#include "text/jinja/convert.h"
#include "text/jinja/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja {
namespace {

constexpr int kWidest = 10'000;  // of a field and of a precision; more is no formatting

// [[fill]align][sign][z][#][0][width][grouping][.precision][type]
struct Specification {
  std::string fill = " ";
  char align = 0;
  char sign = 0;
  bool alternate = false;
  size_t width = 0;
  char grouping = 0;
  std::optional<int> precision;
  char type = 0;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

int read_number(std::string_view text, size_t& i) {
  int number = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    number = number * 10 + (text[i] - '0');
    if (number > kWidest) throw Failure("a format asks for more than " + std::to_string(kWidest) + " characters");
  }
  return number;
}

// `default_align` '>' for numbers, '<' for texts: only a number takes its zeros after the sign.
Specification parse(std::string_view text, char default_align) {
  const auto fail = [&]() { throw Failure("format specification " + sluice::quoted(text) + " is not valid"); };
  Specification s;
  bool fill_given = false;
  size_t i = 0, second = 0;
  if (!text.empty()) unicode::next(text, second);
  if (second < text.size() && is_align(text[second])) {
    s.fill = std::string(text.substr(0, second));
    fill_given = true;
    s.align = text[second];
    i = second + 1;
  } else if (!text.empty() && is_align(text[0])) {
    s.align = text[0];
    i = 1;
  }
  const auto at = [&](char c) { return i < text.size() && text[i] == c; };
  if (at('+') || at('-') || at(' ')) s.sign = text[i++];
  if (at('#')) s.alternate = true, ++i;
  if (!fill_given && at('0')) {
    s.fill = "0";
    if (s.align == 0 && default_align == '>') s.align = '=';
    ++i;
  }
  s.width = static_cast<size_t>(read_number(text, i));
  if (at(',') || at('_')) s.grouping = text[i++];
  if (at('.')) {
    const size_t begin = ++i;
    s.precision = read_number(text, i);
    if (i == begin) fail();
  }
  if (i < text.size()) s.type = text[i++];
  if (i != text.size()) fail();
  return s;
}

std::string padded(const std::string& sign, std::string digits, const Specification& s, char default_align) {
  const char align = s.align ? s.align : default_align;
  const size_t length = unicode::length(sign) + unicode::length(digits);
  const size_t missing = s.width > length ? s.width - length : 0;
  const auto fill = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += s.fill;
    return text;
  };
  if (align == '<') return sign + digits + fill(missing);
  if (align == '>') return fill(missing) + sign + digits;
  if (align == '^') return fill(missing / 2) + sign + digits + fill(missing - missing / 2);
  return sign + fill(missing) + digits;
}

// Separators into the integer part, which `zero_width` pads with zeros first.
std::string grouped(const std::string& number, const Specification& s, size_t sign_length) {
  if (!s.grouping) return number;
  const bool decimal = s.type != 'b' && s.type != 'o' && s.type != 'x' && s.type != 'X';
  const size_t every = decimal ? 3 : 4;
  size_t digits_end = 0;
  const auto is_digit = [&](unsigned char c) { return decimal ? std::isdigit(c) != 0 : std::isxdigit(c) != 0; };
  while (digits_end < number.size() && is_digit(static_cast<unsigned char>(number[digits_end]))) ++digits_end;
  std::string digits = number.substr(0, digits_end);
  const std::string rest = number.substr(digits_end);
  const auto separated = [&](const std::string& plain) {
    std::string out;
    for (size_t i = 0; i < plain.size(); ++i) {
      if (i > 0 && (plain.size() - i) % every == 0) out += s.grouping;
      out += plain[i];
    }
    return out;
  };
  if (s.fill == "0" && (s.align == '=' || s.align == 0)) {
    while (separated("0" + digits).size() + rest.size() + sign_length <= s.width) digits.insert(0, "0");
    if (separated(digits).size() + rest.size() + sign_length < s.width) digits.insert(0, "0");
  }
  return separated(digits) + rest;
}

std::string sign_of(bool negative, const Specification& s) {
  if (negative) return "-";
  return s.sign == 0 || s.sign == '-' ? "" : std::string(1, s.sign);
}

[[noreturn]] void fail_type(const Specification& s, const Value& value) {
  throw Failure(std::string("format code '") + s.type + "' does not fit " + with_article(value));
}

std::string format_text(std::string_view text, const Specification& s, const Value& value) {
  if (s.type != 0 && s.type != 's') fail_type(s, value);
  if (s.sign != 0 || s.alternate || s.grouping || s.align == '=')
    throw Failure("a str takes no sign, '#', ',' or '=' in its format");
  std::string shown(text);
  if (s.precision) shown.resize(unicode::offset_of(shown, static_cast<size_t>(*s.precision)));
  return padded("", shown, s, '<');
}

std::string format_real(double number, Specification s) {
  const bool negative = std::signbit(number) && !std::isnan(number);
  std::string digits;
  const double magnitude = std::abs(number);
  if (s.type == 0 && !s.precision) {
    digits = repr_of(magnitude);
  } else if (s.type == 0) {
    digits = real_digits(magnitude, 'g', *s.precision, s.alternate);
    // Without a type at least one digit follows the point, and the switch to an exponent comes one digit earlier.
    const int significant = std::max(*s.precision, 1);
    if (std::isfinite(magnitude) && digits.find('e') == std::string::npos && digits.find('.') == std::string::npos) {
      if (static_cast<int>(digits.size()) >= significant && magnitude != 0) {
        digits = real_digits(magnitude, 'e', significant - 1, s.alternate);
        const size_t e = digits.find('e');
        if (digits.find('.') < e) {
          size_t end = e;
          while (digits[end - 1] == '0') --end;
          if (digits[end - 1] == '.') --end;
          digits.erase(end, e - end);
        }
      } else {
        digits += ".0";
      }
    }
  } else if (s.type == 'n') {
    digits = real_digits(magnitude, 'g', s.precision.value_or(6), s.alternate);
  } else {
    digits = real_digits(s.type == '%' ? magnitude * 100 : magnitude, s.type, s.precision.value_or(6), s.alternate);
  }
  const std::string sign = sign_of(negative, s);
  return padded(sign, grouped(digits, s, sign.size()), s, '>');
}

std::string format_integer(int64_t number, const Specification& s, const Value& value) {
  if (s.type == 'e' || s.type == 'E' || s.type == 'f' || s.type == 'F' || s.type == 'g' || s.type == 'G' || s.type == '%') {
    return format_real(static_cast<double>(number), s);
  }
  if (s.precision) throw Failure("an int takes no precision in its format");
  if (s.type == 'c') {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) throw Failure("%c needs a character's number");
    std::string character;
    append_utf8(static_cast<char32_t>(number), character);
    return padded("", character, s, '<');
  }
  const char type = s.type == 0 || s.type == 'n' ? 'd' : s.type;
  if (type != 'd' && type != 'b' && type != 'o' && type != 'x' && type != 'X') fail_type(s, value);
  std::string sign = sign_of(number < 0, s);
  if (s.alternate && type != 'd') sign += std::string("0") + type;
  return padded(sign, grouped(integer_digits(magnitude_of(number), type), s, sign.size()), s, '>');
}

}  // namespace

uint64_t magnitude_of(int64_t value) { return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value); }

std::string integer_digits(uint64_t magnitude, char type) {
  char buffer[72];
  const int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'd' ? 10 : 16;
  std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, magnitude, base).ptr);
  if (type == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  return digits;
}

std::string real_digits(double magnitude, char type, int precision, bool alternate) {
  if (precision > kWidest) throw Failure("a format asks for more than " + std::to_string(kWidest) + " characters");
  const bool upper = type == 'E' || type == 'F' || type == 'G';
  std::string digits;
  if (std::isnan(magnitude)) {
    digits = upper ? "NAN" : "nan";
  } else if (std::isinf(magnitude)) {
    digits = upper ? "INF" : "inf";
  } else {
    const char format[] = {'%', '#', '.', '*', type == '%' ? 'f' : type, 0};
    const char plain[] = {'%', '.', '*', type == '%' ? 'f' : type, 0};
    digits.resize(static_cast<size_t>(precision) + 400);
    const int count = std::snprintf(digits.data(), digits.size(), alternate ? format : plain, precision, magnitude);
    digits.resize(static_cast<size_t>(std::max(count, 0)));
  }
  return type == '%' ? digits + "%" : digits;
}

std::string format_value(Sandbox& sandbox, const Value& value, std::string_view specification) {
  if (specification.empty()) return text_of(sandbox, value);
  if (value.is_string()) return format_text(value.text(), parse(specification, '<'), value);
  if (value.is_integer()) return format_integer(value.as_integer(), parse(specification, '>'), value);
  if (value.is(Kind::kFloat)) {
    const Specification s = parse(specification, '>');
    constexpr std::string_view kTypes = "eEfFgGn%";
    if (s.type != 0 && kTypes.find(s.type) == std::string_view::npos) fail_type(s, value);
    return format_real(value.as_real(), s);
  }
  throw Failure(with_article(value) + " takes no format specification");
}

}  // namespace sluice::text::jinja
