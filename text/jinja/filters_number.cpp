#include <cmath>
#include <cstdio>

#include "text/jinja/convert.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/number_format.h"
#include "text/jinja/parameters.h"

namespace sluice::text::jinja {
namespace {

Value absolute(Interpreter&, const Value& subject, Arguments& arguments) {
  arguments.allow_none("abs");
  must_be_defined(subject);
  if (subject.is(Kind::kFloat)) return Value::real(std::abs(subject.as_real()));
  if (!subject.is_integer()) throw Failure("abs needs a number, not " + with_article(subject));
  return subject.as_integer() < 0 ? negate(subject) : plus(subject);
}

Value to_integer(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [otherwise_value, base_value] = arguments.take("int", {"default", "base"});
  const Value otherwise = otherwise_value.is_missing() ? Value::integer(0) : otherwise_value;
  must_be_defined(subject);
  if (subject.is_integer()) return plus(subject);
  if (subject.is(Kind::kFloat)) {
    if (std::isnan(subject.as_real())) return otherwise;
    return Value::integer(truncated(subject.as_real()));
  }
  if (!subject.is_string()) return otherwise;
  interpreter.sandbox().work(subject.text().size());
  const int64_t base = integer_or(base_value, 10, "int");
  if (base != 0 && (base < 2 || base > 36)) return otherwise;
  if (const auto value = parse_integer(subject.text(), static_cast<int>(base))) return Value::integer(*value);
  const auto real = parse_real(subject.text());
  if (!real || std::isnan(*real) || std::isinf(*real)) return otherwise;
  return Value::integer(truncated(*real));
}

Value to_real(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [otherwise_value] = arguments.take("float", {"default"});
  must_be_defined(subject);
  if (subject.is_number()) return Value::real(subject.as_real());
  if (subject.is_string()) {
    interpreter.sandbox().work(subject.text().size());
    if (const auto value = parse_real(subject.text())) return Value::real(*value);
  }
  return otherwise_value.is_missing() ? Value::real(0) : otherwise_value;
}

// To `digits` decimals, the even neighbour when both are as near: printf rounds the exact binary value, as Python does.
double rounded(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 330) return number;
  if (digits < -330) return std::copysign(0.0, number);
  if (digits >= 0) return std::strtod(real_digits(number, 'f', static_cast<int>(digits), false).c_str(), nullptr);
  // Left of the point: as many significant digits as remain.
  const std::string whole = real_digits(std::abs(number), 'e', 20, false);
  const int exponent = std::atoi(whole.substr(whole.find('e') + 1).c_str());
  const int64_t significant = exponent + digits;
  if (significant < -1) return std::copysign(0.0, number);
  if (significant == -1)
    return std::abs(number) * 2 > std::pow(10.0, static_cast<double>(-digits))
               ? std::copysign(std::pow(10.0, static_cast<double>(-digits)), number)
               : std::copysign(0.0, number);
  return std::strtod(real_digits(number, 'e', static_cast<int>(significant), false).c_str(), nullptr);
}

int64_t rounded(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (; digits < 0; ++digits) unit *= 10;
  const int64_t remainder = number % unit, half = unit / 2;
  const int64_t whole = number - remainder;
  const int64_t away = remainder < 0 ? -unit : unit;
  const int64_t distance = std::abs(remainder);
  const bool up = distance > half || (distance == half && (whole / unit) % 2 != 0);
  int64_t result = whole;
  if (up && __builtin_add_overflow(whole, away, &result)) throw Failure("an integer leaves the range of 64 bits");
  return result;
}

Value round_to(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [precision_value, method_value] = arguments.take("round", {"precision", "method"});
  const std::string_view method = method_value.is_string() ? method_value.text() : method_value.is_missing() ? "common" : "";
  if (method != "common" && method != "ceil" && method != "floor")
    throw Failure("the method of round is 'common', 'ceil' or 'floor'");
  must_be_defined(subject);
  if (!subject.is_number()) throw Failure("round needs a number, not " + with_article(subject));
  if (method == "common") {
    if (precision_value.is_none())
      return subject.is(Kind::kFloat) ? Value::integer(truncated(std::nearbyint(subject.as_real()))) : plus(subject);
    const int64_t digits = integer_or(precision_value, 0, "round");
    return subject.is(Kind::kFloat) ? Value::real(rounded(subject.as_real(), digits))
                                    : Value::integer(rounded(subject.as_integer(), digits));
  }
  // func(value * 10 ** precision) / 10 ** precision
  const Value scale =
      power(interpreter.sandbox(), Value::integer(10), precision_value.is_missing() ? Value::integer(0) : precision_value);
  const Value scaled = multiply(interpreter.sandbox(), subject, scale);
  const Value whole =
      scaled.is_integer()
          ? scaled
          : Value::integer(truncated(method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real())));
  return divide(whole, scale);
}

}  // namespace

const NamedFunction* number_filters() {
  static constexpr NamedFunction kFilters[] = {
      {"abs", absolute}, {"int", to_integer}, {"float", to_real}, {"round", round_to}, {"", nullptr}};
  return kFilters;
}

}  // namespace sluice::text::jinja
