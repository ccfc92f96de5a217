#pragma once

#include <functional>

#include "text/jinja/ast.h"
#include "text/jinja/callable.h"

namespace sluice::text::jinja {

/// A macro, or the `caller` of a call block.
struct Macro final : Callable {
  Macro(const Statement& statement, Value defined_in)
      : Callable(statement.text), definition(statement), closure(std::move(defined_in)) {}
  void clear() override { closure = Value(); }
  Value call(Interpreter& interpreter, Arguments& arguments) override;
  Value attribute(Sandbox& sandbox, std::string_view attribute_name) const override;
  std::string text() const override;
  const Statement& definition;
  Value closure;
};

/// Puts the arguments of a call into the slots of the parameters; those that are not given stay missing. Throws Failure for what
/// the macro does not take.
void bind_arguments(Sandbox& sandbox, const Statement& macro, Arguments& arguments, const std::function<Value&(int slot)>& slot);

}  // namespace sluice::text::jinja
