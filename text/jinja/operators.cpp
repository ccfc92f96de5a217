#include "text/jinja/operators.h"

#include <cmath>
#include <functional>

#include "text/jinja/convert.h"
#include "text/jinja/iterate.h"
#include "text/jinja/loop.h"
#include "text/jinja/percent_format.h"

namespace sluice::text::jinja {
namespace {

[[noreturn]] void fail_operands(const char* symbol, const Value& a, const Value& b) {
  must_be_defined(a);
  must_be_defined(b);
  throw Failure(std::string("operator ") + symbol + " does not work on " + type_name(a) + " and " + type_name(b));
}

[[noreturn]] void fail_overflow() { throw Failure("an integer leaves the range of 64 bits"); }

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

bool equal_items(Sandbox& sandbox, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  const Nesting nesting(sandbox);
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].same_as(b[i]) && !equal(sandbox, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Sandbox& sandbox, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  const Nesting nesting(sandbox);
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(sandbox, key);
    if (!other || !equal(sandbox, value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  if (a.size != b.size) return false;
  return a.size == 0 || (a.start == b.start && (a.size == 1 || a.step == b.step));
}

// A long double holds every int64 and every double.
bool numbers_less(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() < b.as_integer();
  const auto wide = [](const Value& v) {
    return v.is_integer() ? static_cast<long double>(v.as_integer()) : static_cast<long double>(v.as_real());
  };
  return wide(a) < wide(b);
}

bool numbers_equal(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.as_integer() == b.as_integer();
  const auto wide = [](const Value& v) {
    return v.is_integer() ? static_cast<long double>(v.as_integer()) : static_cast<long double>(v.as_real());
  };
  return wide(a) == wide(b);
}

bool items_less(Sandbox& sandbox, const std::vector<Value>& a, const std::vector<Value>& b, const char* symbol) {
  const Nesting nesting(sandbox);
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!a[i].same_as(b[i]) && !equal(sandbox, a[i], b[i])) return less(sandbox, a[i], b[i], symbol);
  }
  return a.size() < b.size();
}

Value repeat(Sandbox& sandbox, const Value& sequence, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const size_t unit = sequence.is_string() ? sequence.text().size() : sequence.items().size() * sizeof(Value);
  if (unit > 0 && static_cast<uint64_t>(times) > (1ULL << 40) / unit) sandbox.expect(1ULL << 40);
  sandbox.expect(unit * static_cast<size_t>(times));
  sandbox.work(unit * static_cast<size_t>(times));
  if (sequence.is_string()) {
    std::string text;
    if (unit > 0) text.reserve(unit * static_cast<size_t>(times));
    for (int64_t i = 0; unit > 0 && i < times; ++i) text += sequence.text();
    return make_string(sandbox, std::move(text), sequence.as<String>().markup);
  }
  std::vector<Value> items;
  for (int64_t i = 0; unit > 0 && i < times; ++i) items.insert(items.end(), sequence.items().begin(), sequence.items().end());
  return Value::make<List>(sandbox, sequence.kind(), std::move(items));
}

Value add_strings(Sandbox& sandbox, const Value& a, const Value& b) {
  const bool markup = a.as<String>().markup || b.as<String>().markup;
  const auto part = [&](const Value& v) {
    return markup && !v.as<String>().markup ? escaped_html(v.text()) : std::string(v.text());
  };
  sandbox.expect(a.text().size() + b.text().size());
  if (markup) return make_string(sandbox, part(a) + part(b), true);
  std::string text;
  text.reserve(a.text().size() + b.text().size());
  text.append(a.text()).append(b.text());
  return make_string(sandbox, std::move(text));
}

double checked(double result, bool operands_finite) {
  if (operands_finite && std::isinf(result)) throw Failure("a number is too large for a float");
  return result;
}

}  // namespace

void must_be_defined(const Value& value) {
  if (value.is_undefined()) throw Failure(value.as<Undefined>().message);
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_integer() != 0;
    case Kind::kFloat:
      return value.as_real() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return value.as<Dict>().size() != 0;
    case Kind::kDictView:
      return value.as<DictView>().size() != 0;
    case Kind::kRange:
      return value.as<Range>().size != 0;
    case Kind::kLoop:
      return value.as<Loop>().length() != 0;
    default:
      return true;
  }
}

bool equal(Sandbox& sandbox, const Value& a, const Value& b) {
  sandbox.spend();
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      sandbox.work(std::min(a.text().size(), b.text().size()));
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return equal_items(sandbox, a.items(), b.items());
    case Kind::kDict:
      return equal_dicts(sandbox, a.as<Dict>(), b.as<Dict>());
    case Kind::kRange:
      return equal_ranges(a.as<Range>(), b.as<Range>());
    default:
      return a.same_as(b);
  }
}

bool less(Sandbox& sandbox, const Value& a, const Value& b, const char* symbol) {
  sandbox.spend();
  if (a.is_number() && b.is_number()) return numbers_less(a, b);
  if (a.is_string() && b.is_string()) {  // the order of UTF-8 is that of the code points
    sandbox.work(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();
  }
  if (a.is_sequence() && a.kind() == b.kind()) return items_less(sandbox, a.items(), b.items(), symbol);
  fail_operands(symbol, a, b);
}

bool compare(Sandbox& sandbox, std::string_view symbol, const Value& a, const Value& b) {
  if (symbol == "==") return equal(sandbox, a, b);
  if (symbol == "!=") return !equal(sandbox, a, b);
  if (symbol == "<") return less(sandbox, a, b, "<");
  if (symbol == ">") return less(sandbox, b, a, ">");
  // Not the contrary of > and <: with a NaN all four are false.
  if (symbol == "<=") return less(sandbox, a, b, "<=") || equal(sandbox, a, b);
  return less(sandbox, b, a, ">=") || equal(sandbox, a, b);
}

uint64_t hash_of(Sandbox& sandbox, const Value& key) {
  sandbox.spend();
  switch (key.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return mix(static_cast<uint64_t>(key.kind()));
    case Kind::kBool:
    case Kind::kInt:
      return mix(static_cast<uint64_t>(key.as_integer()));
    case Kind::kFloat: {
      const double number = key.as_real();
      if (std::abs(number) < 9e18 && number == std::floor(number))
        return mix(static_cast<uint64_t>(static_cast<int64_t>(number)));
      return mix(std::hash<double>()(number));
    }
    case Kind::kString:
      sandbox.work(key.text().size());
      return std::hash<std::string_view>()(key.text());
    case Kind::kTuple: {
      const Nesting nesting(sandbox);
      uint64_t hash = 0;
      for (const Value& item : key.items()) hash = mix(hash ^ hash_of(sandbox, item));
      return hash;
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kDictView:
      throw Failure(with_article(key) + " cannot be a key");
    case Kind::kRange:
      return mix(static_cast<uint64_t>(key.as<Range>().size));
    default:
      return mix(reinterpret_cast<uintptr_t>(&key.as<Object>()));
  }
}

bool contains(Sandbox& sandbox, const Value& container, const Value& element) {
  if (container.is_string()) {
    if (!element.is_string()) throw Failure("'in' a str needs a str on its left, not " + type_name(element));
    sandbox.work(container.text().size());
    return container.text().find(element.text()) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) return container.as<Dict>().find(sandbox, element) != nullptr;
  if (container.is(Kind::kDictView) && container.as<DictView>().view == View::kKeys) {
    return container.as<DictView>().dict.as<Dict>().find(sandbox, element) != nullptr;
  }
  if (!is_iterable(container)) throw Failure("'in' needs something to look in on its right, not " + type_name(container));
  bool found = false;
  for_each(sandbox, container, [&](const Value& item) {
    found = item.same_as(element) || equal(sandbox, item, element);
    return !found;
  });
  return found;
}

Value add(Sandbox& sandbox, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.as_integer(), b.as_integer(), &sum)) fail_overflow();
    return Value::integer(sum);
  }
  if (a.is_number() && b.is_number()) return Value::real(a.as_real() + b.as_real());
  if (a.is_string() && b.is_string()) return add_strings(sandbox, a, b);
  if (a.is_sequence() && a.kind() == b.kind()) {
    sandbox.expect((a.items().size() + b.items().size()) * sizeof(Value));
    sandbox.spend(a.items().size() + b.items().size());
    std::vector<Value> items = a.items();
    items.insert(items.end(), b.items().begin(), b.items().end());
    return Value::make<List>(sandbox, a.kind(), std::move(items));
  }
  fail_operands("+", a, b);
}

Value subtract(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t difference = 0;
    if (__builtin_sub_overflow(a.as_integer(), b.as_integer(), &difference)) fail_overflow();
    return Value::integer(difference);
  }
  if (a.is_number() && b.is_number()) return Value::real(a.as_real() - b.as_real());
  fail_operands("-", a, b);
}

Value multiply(Sandbox& sandbox, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.as_integer(), b.as_integer(), &product)) fail_overflow();
    return Value::integer(product);
  }
  if (a.is_number() && b.is_number()) return Value::real(a.as_real() * b.as_real());
  if ((a.is_string() || a.is_sequence()) && b.is_integer()) return repeat(sandbox, a, b.as_integer());
  if ((b.is_string() || b.is_sequence()) && a.is_integer()) return repeat(sandbox, b, a.as_integer());
  fail_operands("*", a, b);
}

Value divide(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) fail_operands("/", a, b);
  if (b.as_real() == 0) throw Failure("division by zero");
  if (a.is_integer() && b.is_integer()) {
    return Value::real(static_cast<double>(static_cast<long double>(a.as_integer()) / static_cast<long double>(b.as_integer())));
  }
  return Value::real(a.as_real() / b.as_real());
}

Value floor_divide(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) fail_operands("//", a, b);
  if (b.as_real() == 0) throw Failure("division by zero");
  if (a.is_integer() && b.is_integer()) {
    const int64_t x = a.as_integer(), y = b.as_integer();
    if (y == -1) return negate(Value::integer(x));
    return Value::integer(x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
  }
  // As CPython: from the remainder, so that the two agree.
  const double x = a.as_real(), y = b.as_real();
  double remainder = std::fmod(x, y);
  double quotient = (x - remainder) / y;
  if (remainder != 0 && (y < 0) != (remainder < 0)) quotient -= 1.0;
  if (quotient == 0) return Value::real(std::copysign(0.0, x / y));
  const double floored = std::floor(quotient);
  return Value::real(quotient - floored > 0.5 ? floored + 1.0 : floored);
}

Value modulo(Sandbox& sandbox, const Value& a, const Value& b) {
  if (a.is_string()) return percent_format(sandbox, a, b);
  if (!a.is_number() || !b.is_number()) fail_operands("%", a, b);
  if (b.as_real() == 0) throw Failure("modulo by zero");
  if (a.is_integer() && b.is_integer()) {
    const int64_t x = a.as_integer(), y = b.as_integer();
    if (y == -1) return Value::integer(0);
    const int64_t remainder = x % y;
    return Value::integer(remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder);
  }
  const double y = b.as_real();
  double remainder = std::fmod(a.as_real(), y);
  if (remainder == 0) return Value::real(std::copysign(0.0, y));
  if ((y < 0) != (remainder < 0)) remainder += y;
  return Value::real(remainder);
}

Value power(Sandbox& sandbox, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) fail_operands("**", a, b);
  if (a.is_integer() && b.is_integer() && b.as_integer() >= 0) {
    int64_t result = 1, base = a.as_integer();
    for (int64_t exponent = b.as_integer(); exponent > 0; exponent >>= 1) {
      sandbox.spend();
      if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) fail_overflow();
      if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
    }
    return Value::integer(result);
  }
  const double x = a.as_real(), y = b.as_real();
  if (x == 0 && y < 0) throw Failure("0 cannot be raised to a negative power");
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y))
    throw Failure("a negative number to a fractional power is a complex number, which is not supported");
  return Value::real(checked(std::pow(x, y), std::isfinite(x) && std::isfinite(y)));
}

Value negate(const Value& value) {
  if (value.is_integer()) {
    int64_t result = 0;
    if (__builtin_sub_overflow(int64_t{0}, value.as_integer(), &result)) fail_overflow();
    return Value::integer(result);
  }
  if (value.is(Kind::kFloat)) return Value::real(-value.as_real());
  must_be_defined(value);
  throw Failure("- does not work on " + type_name(value));
}

Value plus(const Value& value) {
  if (value.is_integer()) return Value::integer(value.as_integer());
  if (value.is(Kind::kFloat)) return value;
  must_be_defined(value);
  throw Failure("+ does not work on " + type_name(value));
}

}  // namespace sluice::text::jinja
