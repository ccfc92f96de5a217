#include "text/jinja/convert.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/callable.h"
#include "text/jinja/loop.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

void append_repr(Sandbox& sandbox, const Value& value, std::string& out);

void append_sequence(Sandbox& sandbox, const std::vector<Value>& items, const char* open, const char* close, std::string& out) {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(sandbox, items[i], out);
  }
  out += close;
}

void append_dict(Sandbox& sandbox, const Dict& dict, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    append_repr(sandbox, key, out);
    out += ": ";
    append_repr(sandbox, value, out);
  }
  out += '}';
}

void append_view(Sandbox& sandbox, const DictView& view, std::string& out) {
  out += view.view == View::kKeys ? "dict_keys([" : view.view == View::kValues ? "dict_values([" : "dict_items([";
  bool first = true;
  for (const auto& [key, value] : view.dict.as<Dict>().entries()) {
    if (!first) out += ", ";
    first = false;
    if (view.view == View::kItems) out += '(';
    if (view.view != View::kValues) append_repr(sandbox, key, out);
    if (view.view == View::kItems) out += ", ";
    if (view.view != View::kKeys) append_repr(sandbox, value, out);
    if (view.view == View::kItems) out += ')';
  }
  out += "])";
}

void append_range(const Range& range, std::string& out) {
  out += "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
  if (range.step != 1) out += ", " + std::to_string(range.step);
  out += ')';
}

void append_repr(Sandbox& sandbox, const Value& value, std::string& out) {
  const Nesting nesting(sandbox);
  sandbox.spend();
  sandbox.expect(out.size());
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      out += "Undefined";
      return;
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kBool:
      out += value.as_bool() ? "True" : "False";
      return;
    case Kind::kInt:
      out += std::to_string(value.as_integer());
      return;
    case Kind::kFloat:
      out += repr_of(value.as_real());
      return;
    case Kind::kString:
      sandbox.work(value.text().size());
      out += value.as<String>().markup ? "Markup(" + repr_of(value.text()) + ")" : repr_of(value.text());
      return;
    case Kind::kList:
      append_sequence(sandbox, value.items(), "[", "]", out);
      return;
    case Kind::kTuple:
      append_sequence(sandbox, value.items(), "(", value.items().size() == 1 ? ",)" : ")", out);
      return;
    case Kind::kDict:
      append_dict(sandbox, value.as<Dict>(), out);
      return;
    case Kind::kDictView:
      append_view(sandbox, value.as<DictView>(), out);
      return;
    case Kind::kRange:
      append_range(value.as<Range>(), out);
      return;
    case Kind::kIterator:
      out += std::string("<") + value.as<Iterator>().name + " object>";
      return;
    case Kind::kNamespace:
      out += "<Namespace ";
      append_dict(sandbox, value.as<Namespace>().attributes.as<Dict>(), out);
      out += '>';
      return;
    case Kind::kLoop: {
      auto& loop = value.as<Loop>();
      out += "<LoopContext " + std::to_string(loop.index0 + 1) + "/" + std::to_string(loop.length()) + ">";
      return;
    }
    case Kind::kCallable:
      out += value.as<Callable>().text();
      return;
    case Kind::kCycler:
      out += "<Cycler object>";
      return;
    case Kind::kActivation:
      return;
  }
}

std::string without_underscores(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](size_t k) { return k < text.size() && std::isalnum(static_cast<unsigned char>(text[k])) != 0; };
    if (text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    digits += text[i];
  }
  return digits;
}

}  // namespace

void append_text(Sandbox& sandbox, const Value& value, std::string& out) {
  if (value.is_string()) {
    sandbox.work(value.text().size());
    out += value.text();
  } else if (!value.is_undefined() && !value.is_missing()) {
    append_repr(sandbox, value, out);
  }
}

std::string text_of(Sandbox& sandbox, const Value& value) {
  std::string out;
  append_text(sandbox, value, out);
  return out;
}

std::string repr_of(Sandbox& sandbox, const Value& value) {
  std::string out;
  append_repr(sandbox, value, out);
  return out;
}

std::string repr_of(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const char* const end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (scientific.front() == '-') {
    sign = "-";
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  std::string digits(1, scientific[0]);
  if (e > 1) digits += scientific.substr(2, e - 2);
  const int exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    if (count > 1) digits.insert(1, ".");
    char tail[16];
    std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
    return sign + digits + tail;
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (exponent >= count - 1) return sign + digits + std::string(static_cast<size_t>(exponent - count + 1), '0') + ".0";
  return sign + digits.insert(static_cast<size_t>(exponent) + 1, ".");
}

std::string repr_of(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = unicode::next(text, i);
    char escape[16];
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (unicode::is_printable(c)) {
      out += text.substr(begin, i - begin);
    } else {
      std::snprintf(escape, sizeof escape, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", static_cast<unsigned>(c));
      out += escape;
    }
  }
  return out += quote;
}

std::string escaped_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  std::string digits = without_underscores(unicode::strip(text, true, true));
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.erase(0, 1);
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == prefixed || base == 0)) {
      base = prefixed;
      digits.erase(0, digits.size() > 3 && digits[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) return std::nullopt;
    base = 10;
  }
  if (base < 2 || base > 36) return std::nullopt;
  if (negative) digits.insert(0, "-");
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  std::string digits = without_underscores(unicode::strip(text, true, true));
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.erase(0, 1);
  if (digits.find_first_of("xXpP(") != std::string::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(digits.c_str(), nullptr);  // inf or 0, as in Python
  if (error != std::errc()) return std::nullopt;
  return value;
}

int64_t truncated(double number) {
  if (std::isnan(number) || std::isinf(number)) throw Failure("a float " + repr_of(number) + " has no integer");
  if (std::abs(number) >= 9223372036854775807.0) throw Failure("an integer leaves the range of 64 bits");
  return static_cast<int64_t>(number);
}

}  // namespace sluice::text::jinja
