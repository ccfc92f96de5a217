#include "text/jinja/percent_format.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/convert.h"
#include "text/jinja/number_format.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja {
namespace {

// %[(name)][flags][width][.precision]type
struct Directive {
  std::optional<std::string> name;
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  size_t width = 0;
  std::optional<int> precision;
  char32_t type = 0;
};

class Formatter {
 public:
  Formatter(Sandbox& sandbox, std::string_view format, const Value& arguments)
      : sandbox_(sandbox), format_(format), arguments_(arguments) {}

  std::string run() {
    while (position_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', position_), format_.size());
      out_ += format_.substr(position_, percent - position_);
      position_ = percent;
      if (percent == format_.size()) break;
      ++position_;
      directive();
      sandbox_.expect(out_.size());
    }
    // What has [] may be a mapping of which the format takes no key.
    const bool may_be_unused =
        arguments_.is(Kind::kDict) || arguments_.is(Kind::kList) || arguments_.is(Kind::kRange) || arguments_.is_undefined();
    const bool all_used = arguments_.is(Kind::kTuple) ? used_ == arguments_.items().size() : used_ > 0 || may_be_unused;
    if (!all_used) throw Failure("% was given more values than the format takes");
    return std::move(out_);
  }

 private:
  void directive() {
    const Directive d = read();
    if (d.type == '%') {
      out_ += '%';
      return;
    }
    const Value value = d.name ? named(*d.name) : next_argument();
    out_ += padded(d, value);
  }

  char peek() const {
    if (position_ >= format_.size()) throw Failure("a format ends in the middle of a %");
    return format_[position_];
  }

  Directive read() {
    Directive d;
    if (peek() == '(') d.name = read_name();
    for (;; ++position_) {
      const char c = peek();
      if (c == '-')
        d.left = true;
      else if (c == '+')
        d.plus = true;
      else if (c == ' ')
        d.space = true;
      else if (c == '0')
        d.zero = true;
      else if (c == '#')
        d.alternate = true;
      else
        break;
    }
    const int64_t width = read_number();
    if (width < 0) d.left = true;
    d.width = static_cast<size_t>(std::abs(width));
    if (peek() == '.') {
      ++position_;
      d.precision = static_cast<int>(std::max<int64_t>(0, read_number()));
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++position_;
    d.type = unicode::next(format_, position_);
    return d;
  }

  std::string read_name() {
    const size_t begin = ++position_;
    for (int open = 1; open > 0; ++position_) {
      if (peek() == '(') ++open;
      if (peek() == ')') --open;
    }
    return std::string(format_.substr(begin, position_ - 1 - begin));
  }

  int64_t read_number() {
    constexpr int64_t kWidest = 10'000;
    int64_t number = 0;
    if (peek() == '*') {
      ++position_;
      const Value value = next_argument();
      if (!value.is_integer()) throw Failure("* in a format needs an int");
      number = value.as_integer();
    } else {
      for (; peek() >= '0' && peek() <= '9'; ++position_) number = std::min(number * 10 + (peek() - '0'), kWidest + 1);
    }
    if (std::abs(number) > kWidest || number == INT64_MIN)
      throw Failure("a format asks for more than " + std::to_string(kWidest) + " characters");
    return number;
  }

  Value named(const std::string& name) {
    if (!arguments_.is(Kind::kDict)) throw Failure("%(" + name + ") needs a mapping");
    const Value* found = arguments_.as<Dict>().find(sandbox_, name);
    if (!found) throw Failure("the mapping has no key '" + name + "' for %(" + name + ")");
    return *found;
  }

  Value next_argument() {
    if (arguments_.is(Kind::kTuple)) {
      if (used_ >= arguments_.items().size()) throw Failure("the format takes more values than % was given");
      return arguments_.items()[used_++];
    }
    if (used_++ > 0) throw Failure("the format takes more values than % was given");
    return arguments_;
  }

  std::string padded(const Directive& d, const Value& value) {
    std::string sign, body;
    bool number = false;
    switch (d.type) {
      case 's':
        body = text_of(sandbox_, value);
        break;
      case 'r':
      case 'a':
        body = repr_of(sandbox_, value);
        break;
      case 'c':
        body = character(value);
        break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        number = true;
        body = integer(d, value, sign);
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        number = true;
        body = real(d, value, sign);
        break;
      default:
        throw Failure("a format has an unknown type after its %");
    }
    if (!number && d.type != 'c' && d.precision) body.resize(unicode::offset_of(body, static_cast<size_t>(*d.precision)));
    const size_t length = unicode::length(body) + sign.size();
    const size_t missing = d.width > length ? d.width - length : 0;
    if (d.left) return sign + body + std::string(missing, ' ');
    if (d.zero && number) return sign + std::string(missing, '0') + body;
    return std::string(missing, ' ') + sign + body;
  }

  static std::string sign_of(const Directive& d, bool negative) { return negative ? "-" : d.plus ? "+" : d.space ? " " : ""; }

  static std::string character(const Value& value) {
    if (value.is_string() && value.as<String>().length == 1) return std::string(value.text());
    if (!value.is_integer()) throw Failure("%c needs an int or one character");
    const int64_t c = value.as_integer();
    if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) throw Failure("%c needs a character's number");
    std::string text;
    append_utf8(static_cast<char32_t>(c), text);
    return text;
  }

  static std::string integer(const Directive& d, const Value& value, std::string& sign) {
    must_be_defined(value);
    const bool hexadecimal = d.type == 'x' || d.type == 'X' || d.type == 'o';
    if (!value.is_integer() && (hexadecimal || !value.is(Kind::kFloat)))
      throw Failure(std::string("%") + static_cast<char>(d.type) + " needs a number, not " + with_article(value));
    const int64_t number = value.is_integer() ? value.as_integer() : truncated(value.as_real());
    sign = sign_of(d, number < 0);
    const char type = hexadecimal ? static_cast<char>(d.type) : 'd';
    if (d.alternate && hexadecimal) sign += std::string("0") + type;
    std::string digits = integer_digits(magnitude_of(number), type);
    if (d.precision && digits.size() < static_cast<size_t>(*d.precision))
      digits.insert(0, static_cast<size_t>(*d.precision) - digits.size(), '0');
    return digits;
  }

  static std::string real(const Directive& d, const Value& value, std::string& sign) {
    must_be_defined(value);
    if (!value.is_number())
      throw Failure(std::string("%") + static_cast<char>(d.type) + " needs a number, not " + with_article(value));
    const double number = value.as_real();
    sign = sign_of(d, std::signbit(number) && !std::isnan(number));
    return real_digits(std::abs(number), static_cast<char>(d.type), d.precision.value_or(6), d.alternate);
  }

  Sandbox& sandbox_;
  std::string_view format_;
  const Value& arguments_;
  std::string out_;
  size_t position_ = 0;
  size_t used_ = 0;
};

}  // namespace

Value percent_format(Sandbox& sandbox, const Value& format, const Value& arguments) {
  sandbox.work(format.text().size());
  return make_string(sandbox, Formatter(sandbox, format.text(), arguments).run(), format.as<String>().markup);
}

}  // namespace sluice::text::jinja
