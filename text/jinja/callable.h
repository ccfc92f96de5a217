#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

class Interpreter;

/// What a call passes.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The values of the parameters `names`, missing where not given. Throws Failure for too many, unknown or doubled ones, and
  /// where one of the first `required` is missing. `what` is the function, for messages.
  template <size_t N>
  std::array<Value, N> take(std::string_view what, const char* const (&names)[N], size_t required = 0) const {
    std::array<Value, N> values;
    bind(what, names, values.data(), N, required);
    return values;
  }
  void allow_none(std::string_view what) const;
  /// Throws Failure for a named argument that is not among `names`.
  void allow_names(std::initializer_list<std::string_view> names) const;
  /// Takes a named argument out; missing when it is not there.
  Value pop(std::string_view name);

 private:
  void bind(std::string_view what, const char* const* names, Value* values, size_t count, size_t required) const;
};

struct Callable : Object {
  explicit Callable(std::string function_name) : name(std::move(function_name)) {}
  Kind kind() const { return Kind::kCallable; }
  size_t extra_bytes() const { return name.size(); }
  virtual Value call(Interpreter& interpreter, Arguments& arguments) = 0;
  /// NAME of callable.NAME; missing when there is none.
  virtual Value attribute(Sandbox&, std::string_view) const { return Value(); }
  virtual std::string text() const { return "<function " + name + ">"; }
  const std::string name;
};

using Function = Value (*)(Interpreter& interpreter, const Value& self, Arguments& arguments);

/// A function of ours, or a method bound to `self`. Without `takes_names` a call with named arguments fails.
Value make_method(Sandbox& sandbox, std::string_view name, const Value& self, Function function, bool takes_names = true);

}  // namespace sluice::text::jinja
