#include <cstdio>
#include <ctime>

#include "text/jinja/convert.h"
#include "text/jinja/cycler.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/parameters.h"

namespace sluice::text::jinja {
namespace {

Value range(Interpreter& interpreter, const Value&, Arguments& arguments) {
  constexpr int64_t kLongest = 100'000;  // as in the reference's sandbox
  if (!arguments.named.empty()) throw Failure("range() takes no named arguments");
  const auto [first, second, third] = arguments.take("range", {"start", "stop", "step"}, 1);
  const int64_t start = second.is_missing() ? 0 : integer_or(first, 0, "range()");
  const int64_t stop = integer_or(second.is_missing() ? first : second, 0, "range()");
  const int64_t step = integer_or(third, 1, "range()");
  if (step == 0) throw Failure("the step of range() cannot be 0");
  // In unsigned numbers, which hold every distance.
  const bool empty = step > 0 ? start >= stop : start <= stop;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t size = empty ? 0 : (distance - 1) / stride + 1;
  if (size > kLongest) throw Failure("range() gives at most " + std::to_string(kLongest) + " numbers");
  return Value::make<Range>(interpreter.sandbox(), start, stop, step, static_cast<int64_t>(size));
}

// dict(mapping or pairs, name=value, ...)
Value dict_of(Interpreter& interpreter, Arguments& arguments, const char* what) {
  Sandbox& sandbox = interpreter.sandbox();
  if (arguments.positional.size() > 1) throw Failure(std::string(what) + " takes one mapping, or named arguments");
  Value result = make_dict(sandbox);
  auto& dict = result.as<Dict>();
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    must_be_defined(from);
    if (from.is(Kind::kDict)) {
      for (const auto& [key, value] : from.as<Dict>().entries()) dict.set(sandbox, key, value);
    } else {
      for_each(sandbox, from, [&](const Value& item) {
        const std::vector<Value> pair = elements_of(sandbox, item);
        if (pair.size() != 2) throw Failure(std::string(what) + " needs pairs of a key and a value");
        dict.set(sandbox, pair[0], pair[1]);
        return true;
      });
    }
  }
  for (const auto& [name, value] : arguments.named) dict.set(sandbox, make_string(sandbox, name), value);
  return result;
}

Value dict(Interpreter& interpreter, const Value&, Arguments& arguments) { return dict_of(interpreter, arguments, "dict()"); }

Value namespace_of(Interpreter& interpreter, const Value&, Arguments& arguments) {
  Value attributes = dict_of(interpreter, arguments, "namespace()");
  for (const auto& [name, value] : attributes.as<Dict>().entries()) {
    if (name.is_string() && name.text().starts_with('_'))
      throw Failure("attributes of a namespace do not begin with an underscore, as '" + std::string(name.text()) + "' does");
  }
  return Value::make<Namespace>(interpreter.sandbox(), std::move(attributes));
}

Value cycler(Interpreter& interpreter, const Value&, Arguments& arguments) {
  arguments.allow_names({});
  if (arguments.positional.empty()) throw Failure("cycler() needs the values to cycle through");
  return Value::make<Cycler>(interpreter.sandbox(), arguments.positional);
}

struct Joiner final : Callable {
  explicit Joiner(Value text) : Callable("joiner"), separator(std::move(text)) {}
  void clear() override { separator = Value(); }
  Value call(Interpreter& interpreter, Arguments& arguments) override {
    arguments.allow_none("joiner");
    if (used) return separator;
    used = true;
    return make_string(interpreter.sandbox(), "");
  }
  Value separator;
  bool used = false;
};

Value joiner(Interpreter& interpreter, const Value&, Arguments& arguments) {
  const auto [separator] = arguments.take("joiner", {"sep"});
  return Value::make<Joiner>(interpreter.sandbox(),
                             separator.is_missing() ? make_string(interpreter.sandbox(), ", ") : separator);
}

Value raise_exception(Interpreter& interpreter, const Value&, Arguments& arguments) {
  const auto [message] = arguments.take("raise_exception", {"message"}, 1);
  throw Failure("the template refuses its input: " + text_of(interpreter.sandbox(), message));
}

// %f is Python's own; the rest is C's, in the C locale.
std::string strftime_text(const std::string& format, const std::tm& time) {
  std::string expanded;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      expanded += format[i];
      continue;
    }
    const char letter = format[++i];
    if (letter == 'f')
      expanded += "000000";
    else if (letter != 'z' && letter != 'Z')
      expanded += std::string("%") + letter;  // local time without a zone prints none
  }
  if (expanded.empty()) return "";
  std::string text(16 * 1024, '\0');
  text.resize(std::strftime(text.data(), text.size(), expanded.c_str(), &time));
  return text;
}

Value strftime_now(Interpreter& interpreter, const Value&, Arguments& arguments) {
  constexpr size_t kLongest = 256;
  const auto [format] = arguments.take("strftime_now", {"format"}, 1);
  const std::string_view text = string_of(format, "strftime_now");
  if (text.size() > kLongest) throw Failure("a time format has at most " + std::to_string(kLongest) + " characters");
  if (text.find('\0') != std::string_view::npos) throw Failure("a time format holds no null character");
  return make_string(interpreter.sandbox(), strftime_text(std::string(text), interpreter.now()));
}

}  // namespace

Value make_globals(Sandbox& sandbox) {
  Value globals = make_dict(sandbox);
  const auto add = [&](const char* name, Function function) {
    globals.as<Dict>().set(sandbox, make_string(sandbox, name), make_method(sandbox, name, Value::none(), function));
  };
  add("range", range);
  add("dict", dict);
  add("namespace", namespace_of);
  add("cycler", cycler);
  add("joiner", joiner);
  add("raise_exception", raise_exception);
  add("strftime_now", strftime_now);
  return globals;
}

}  // namespace sluice::text::jinja
