#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/parameters.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

using Mapping = std::string (*)(std::string_view);
using Property = bool (*)(char32_t);

template <Mapping mapping>
Value mapped(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  arguments.allow_none("this method of str");
  interpreter.sandbox().expect(self.text().size() * 3);
  return make_string(interpreter.sandbox(), mapping(self.text()), self.as<String>().markup);
}

// True when there is a character and every one has the property.
template <Property property>
Value all(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  arguments.allow_none("this method of str");
  const std::string_view text = self.text();
  interpreter.sandbox().work(text.size());
  for (size_t i = 0; i < text.size();) {
    if (!property(unicode::next(text, i))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

Value isascii(Interpreter&, const Value& self, Arguments& arguments) {
  arguments.allow_none("isascii");
  return Value::boolean(self.as<String>().is_ascii());
}

Value isprintable(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return self.text().empty() ? Value::boolean(true) : all<unicode::is_printable>(interpreter, self, arguments);
}

Value isidentifier(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  arguments.allow_none("isidentifier");
  const std::string_view text = self.text();
  interpreter.sandbox().work(text.size());
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    const char32_t c = unicode::next(text, i);
    if (!(first ? unicode::is_identifier_start(c) : unicode::is_identifier_part(c))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

// Some cased character, and none of the other case.
Value is_case(Interpreter& interpreter, const Value& self, Arguments& arguments, Property wanted, Property other) {
  arguments.allow_none("this method of str");
  const std::string_view text = self.text();
  interpreter.sandbox().work(text.size());
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = unicode::next(text, i);
    if (other(c) || unicode::is_title(c)) return Value::boolean(false);
    found = found || wanted(c);
  }
  return Value::boolean(found);
}

Value islower(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return is_case(interpreter, self, arguments, unicode::is_lower, unicode::is_upper);
}
Value isupper(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return is_case(interpreter, self, arguments, unicode::is_upper, unicode::is_lower);
}

Value istitle(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  arguments.allow_none("istitle");
  const std::string_view text = self.text();
  interpreter.sandbox().work(text.size());
  bool found = false, in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = unicode::next(text, i);
    const bool capital = unicode::is_upper(c) || unicode::is_title(c), small = unicode::is_lower(c);
    if (capital ? in_word : small && !in_word) return Value::boolean(false);
    in_word = capital || small;
    found = found || in_word;
  }
  return Value::boolean(found);
}

// ---- fields
// ------------------------------------------------------------------------------------------------------------------------

enum class Align { kLeft, kRight, kCenter };

std::string filled(Sandbox& sandbox, std::string_view fill, int64_t count) {
  std::string text;
  if (count <= 0) return text;
  sandbox.expect(fill.size() * static_cast<size_t>(count));
  sandbox.work(fill.size() * static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) text += fill;
  return text;
}

Value justified(Interpreter& interpreter, const Value& self, Arguments& arguments, Align align) {
  const auto [width_value, fill_value] = arguments.take("this method of str", {"width", "fillchar"}, 1);
  const int64_t width = integer_or(width_value, 0, "a field");
  const std::string_view fill = fill_value.is_missing() ? " " : string_of(fill_value, "a field");
  if (fill.size() > 4 || unicode::length(fill) != 1) throw Failure("a field is filled with exactly one character");
  const auto length = static_cast<int64_t>(self.as<String>().length);
  const int64_t missing = width > length ? width - length : 0;
  // CPython puts the odd one in front when the width is odd.
  const int64_t left = align == Align::kLeft ? 0 : align == Align::kRight ? missing : missing / 2 + (missing & width & 1);
  std::string text = filled(interpreter.sandbox(), fill, left);
  text += self.text();
  text += filled(interpreter.sandbox(), fill, missing - left);
  return make_string(interpreter.sandbox(), std::move(text), self.as<String>().markup);
}

Value ljust(Interpreter& i, const Value& self, Arguments& a) { return justified(i, self, a, Align::kLeft); }
Value rjust(Interpreter& i, const Value& self, Arguments& a) { return justified(i, self, a, Align::kRight); }
Value center(Interpreter& i, const Value& self, Arguments& a) { return justified(i, self, a, Align::kCenter); }

Value zfill(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [width_value] = arguments.take("zfill", {"width"}, 1);
  const std::string_view text = self.text();
  const int64_t missing =
      std::max<int64_t>(0, integer_or(width_value, 0, "zfill") - static_cast<int64_t>(self.as<String>().length));
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return make_string(
      interpreter.sandbox(),
      std::string(text.substr(0, sign)) + filled(interpreter.sandbox(), "0", missing) + std::string(text.substr(sign)),
      self.as<String>().markup);
}

Value expandtabs(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [size_value] = arguments.take("expandtabs", {"tabsize"});
  const int64_t size = integer_or(size_value, 8, "expandtabs");
  std::string text;
  int64_t column = 0;
  const std::string_view from = self.text();
  for (size_t i = 0; i < from.size();) {
    const size_t begin = i;
    const char32_t c = unicode::next(from, i);
    if (c != '\t') {
      text += from.substr(begin, i - begin);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t step = size - column % size;
      text += filled(interpreter.sandbox(), " ", step);
      interpreter.sandbox().expect(text.size());
      column += step;
    }
  }
  return make_string(interpreter.sandbox(), std::move(text), self.as<String>().markup);
}

}  // namespace

const NamedFunction* string_case_methods() {
  static constexpr NamedFunction kMethods[] = {{"upper", mapped<unicode::upper>},
                                               {"lower", mapped<unicode::lower>},
                                               {"title", mapped<unicode::title>},
                                               {"capitalize", mapped<unicode::capitalize>},
                                               {"swapcase", mapped<unicode::swap_case>},
                                               {"casefold", mapped<unicode::fold_case>},
                                               {"isspace", all<unicode::is_space>},
                                               {"isalpha", all<unicode::is_alpha>},
                                               {"isalnum", all<unicode::is_alnum>},
                                               {"isdigit", all<unicode::is_digit>},
                                               {"isdecimal", all<unicode::is_decimal>},
                                               {"isnumeric", all<unicode::is_numeric>},
                                               {"isascii", isascii},
                                               {"isprintable", isprintable},
                                               {"isidentifier", isidentifier},
                                               {"islower", islower},
                                               {"isupper", isupper},
                                               {"istitle", istitle},
                                               {"ljust", ljust},
                                               {"rjust", rjust},
                                               {"center", center},
                                               {"zfill", zfill},
                                               {"expandtabs", expandtabs},
                                               {"", nullptr}};
  return kMethods;
}

}  // namespace sluice::text::jinja
