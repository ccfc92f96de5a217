#include "text/jinja/callable.h"

#include <algorithm>

#include "base/text/strings.h"

namespace sluice::text::jinja {
namespace {

struct Method final : Callable {
  Method(std::string_view method, Value object, Function implementation, bool names)
      : Callable(std::string(method)), self(std::move(object)), function(implementation), takes_names(names) {}
  void clear() override { self = Value(); }
  Value call(Interpreter& interpreter, Arguments& arguments) override {
    if (!takes_names && !arguments.named.empty()) throw Failure(name + "() takes no named arguments");
    return function(interpreter, self, arguments);
  }
  Value self;
  Function function;
  bool takes_names;
};

}  // namespace

Value make_method(Sandbox& sandbox, std::string_view name, const Value& self, Function function, bool takes_names) {
  return Value::make<Method>(sandbox, name, self, function, takes_names);
}

void Arguments::bind(std::string_view what, const char* const* names, Value* values, size_t count, size_t required) const {
  const std::string place = std::string(what) + "()";
  if (positional.size() > count)
    throw Failure(place + " takes at most " + plural(static_cast<int64_t>(count), "argument") + ", but got " +
                  std::to_string(positional.size()));
  std::copy(positional.begin(), positional.end(), values);
  for (const auto& [name, value] : named) {
    const auto* const found =
        std::find_if(names, names + count, [&name = name](const char* candidate) { return name == candidate; });
    if (found == names + count) throw Failure(place + " has no argument " + sluice::quoted(name));
    Value& slot = values[found - names];
    if (!slot.is_missing()) throw Failure(place + " got two values for its argument " + sluice::quoted(name));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values[i].is_missing()) throw Failure(place + " needs its argument " + sluice::quoted(names[i]));
  }
}

void Arguments::allow_none(std::string_view what) const {
  if (!positional.empty() || !named.empty()) throw Failure(std::string(what) + "() takes no arguments");
}

void Arguments::allow_names(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : named) {
    if (std::find(names.begin(), names.end(), name) == names.end()) throw Failure("there is no argument " + sluice::quoted(name));
  }
}

Value Arguments::pop(std::string_view name) {
  const auto found = std::find_if(named.begin(), named.end(), [&](const auto& argument) { return argument.first == name; });
  if (found == named.end()) return Value();
  Value value = std::move(found->second);
  named.erase(found);
  return value;
}

}  // namespace sluice::text::jinja
