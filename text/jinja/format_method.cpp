#include <charconv>
#include <optional>

#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/number_format.h"
#include "text/jinja/operators.h"

namespace sluice::text::jinja {
namespace {

// "{field!conversion:specification}", the specification may hold fields itself.
class Formatter {
 public:
  Formatter(Sandbox& sandbox, const Arguments& arguments) : sandbox_(sandbox), arguments_(arguments) {}

  std::string run(std::string_view format, int levels = 2) {
    if (levels < 0) throw Failure("the fields of a format nest too deep");
    sandbox_.work(format.size());
    std::string out;
    for (size_t i = 0; i < format.size();) {
      const char c = format[i];
      if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
        out += c;
        i += 2;
      } else if (c == '}') {
        throw Failure("a format has a single '}'");
      } else if (c != '{') {
        out += c;
        ++i;
      } else {
        const size_t end = field_end(format, i + 1);
        out += field(format.substr(i + 1, end - i - 1), levels);
        sandbox_.expect(out.size());
        i = end + 1;
      }
    }
    return out;
  }

 private:
  static size_t field_end(std::string_view format, size_t i) {
    int open = 1;
    bool in_brackets = false, in_name = true;
    for (; i < format.size(); ++i) {
      const char c = format[i];
      if (in_name && c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (in_brackets) continue;
      if (c == ':' || c == '!') in_name = false;
      if (c == '{') {
        if (in_name) throw Failure("a format has a '{' in the name of a field");
        ++open;
      }
      if (c == '}' && --open == 0) return i;
    }
    throw Failure("a format has a '{' without its '}'");
  }

  std::string field(std::string_view text, int levels) {
    size_t name_end = 0;
    for (bool in_brackets = false; name_end < text.size(); ++name_end) {
      const char c = text[name_end];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == ':' || c == '!')) break;
    }
    Value value = look_up(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) throw Failure("a format has a '!' without !r or !s after it");
      value = converted(value, rest[1]);
      rest.remove_prefix(2);
    }
    if (!rest.empty()) rest.remove_prefix(1);
    const std::string specification = run(rest, levels - 1);
    return format_value(sandbox_, value, specification);
  }

  Value converted(const Value& value, char conversion) {
    if (conversion == 's') return make_string(sandbox_, text_of(sandbox_, value));
    if (conversion == 'r' || conversion == 'a') return make_string(sandbox_, repr_of(sandbox_, value));
    throw Failure(std::string("a format has the unknown conversion !") + conversion);
  }

  static std::optional<size_t> number_of(std::string_view text) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  // name.attribute[index]...
  Value look_up(std::string_view text) {
    const size_t end = std::min(text.find_first_of(".["), text.size());
    Value value = first(text.substr(0, end), end == text.size());
    for (size_t i = end; i < text.size();) {
      sandbox_.spend();
      if (text[i] == '.') {
        const size_t stop = std::min(text.find_first_of(".[", i + 1), text.size());
        if (stop == i + 1) throw Failure("a format has an empty attribute");
        value = get_attribute(sandbox_, value, text.substr(i + 1, stop - i - 1));
        i = stop;
        continue;
      }
      const size_t stop = text.find(']', i);
      if (text[i] != '[' || stop == std::string_view::npos || stop == i + 1)
        throw Failure("a format has a '[' without its index");
      const std::string_view index = text.substr(i + 1, stop - i - 1);
      const auto number = number_of(index);
      value = get_item(sandbox_, value,
                       number ? Value::integer(static_cast<int64_t>(*number)) : make_string(sandbox_, std::string(index)));
      i = stop + 1;
    }
    return value;
  }

  // `alone`: no attribute or index follows. Only such a field may go without a number, and decides how the fields are counted.
  Value first(std::string_view name, bool alone) {
    const auto number = number_of(name);
    if ((name.empty() && alone) || number) {
      const bool automatic = name.empty();
      if (alone && numbering_ && *numbering_ != automatic) throw Failure("a format mixes numbered fields with unnumbered ones");
      if (alone) numbering_ = automatic;
      const size_t index = automatic ? next_++ : *number;
      if (index >= arguments_.positional.size()) throw Failure("a format has more fields than arguments");
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    throw Failure("a format has the field '" + std::string(name) + "', for which there is no argument");
  }

  Sandbox& sandbox_;
  const Arguments& arguments_;
  size_t next_ = 0;
  std::optional<bool> numbering_;  // true: {}, false: {0}
};

}  // namespace

Value format_method(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return make_string(interpreter.sandbox(), Formatter(interpreter.sandbox(), arguments).run(self.text()),
                     self.as<String>().markup);
}

}  // namespace sluice::text::jinja
