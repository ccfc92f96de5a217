#include "text/jinja/macro.h"

#include "text/jinja/convert.h"
#include "text/jinja/interpreter.h"

namespace sluice::text::jinja {

Value Macro::call(Interpreter& interpreter, Arguments& arguments) {
  const Value alive = closure;  // the macro may be assigned over while it runs
  return interpreter.run_macro(definition, alive, arguments);
}

Value Macro::attribute(Sandbox& sandbox, std::string_view attribute_name) const {
  if (attribute_name == "name") return definition.kind == StatementKind::kMacro ? make_string(sandbox, name) : Value::none();
  if (attribute_name == "arguments") {
    std::vector<Value> names;
    for (const Parameter& parameter : definition.parameters) names.push_back(make_string(sandbox, parameter.name));
    return make_tuple(sandbox, std::move(names));
  }
  if (attribute_name == "caller") return Value::boolean(definition.caller_slot >= 0);
  if (attribute_name == "catch_kwargs") return Value::boolean(definition.kwargs_slot >= 0);
  if (attribute_name == "catch_varargs") return Value::boolean(definition.varargs_slot >= 0);
  if (attribute_name == "explicit_caller") return Value::boolean(definition.has_caller_parameter);
  return Value();
}

std::string Macro::text() const {
  return definition.kind == StatementKind::kMacro ? "<Macro " + repr_of(std::string_view(name)) + ">" : "<Macro anonymous>";
}

void bind_arguments(Sandbox& sandbox, const Statement& macro, Arguments& arguments, const std::function<Value&(int slot)>& slot) {
  const std::string what = macro.kind == StatementKind::kMacro ? "macro '" + macro.text + "'" : "the block";
  const size_t taken = std::min(arguments.positional.size(), macro.parameters.size());
  for (size_t i = 0; i < taken; ++i) slot(macro.parameters[i].slot) = arguments.positional[i];
  for (size_t i = taken; i < macro.parameters.size(); ++i) {
    sandbox.spend(1 + arguments.named.size());
    slot(macro.parameters[i].slot) = arguments.pop(macro.parameters[i].name);
  }
  if (macro.caller_slot >= 0) {
    Value caller = arguments.pop("caller");
    slot(macro.caller_slot) = caller.is_missing() || caller.is_none()
                                  ? make_undefined(sandbox, "there is no caller: " + what + " was not used by a call block")
                                  : caller;
  }
  if (macro.kwargs_slot >= 0) {
    Value rest = make_dict(sandbox);
    for (const auto& [name, value] : arguments.named) rest.as<Dict>().set(sandbox, make_string(sandbox, name), value);
    slot(macro.kwargs_slot) = rest;
  } else if (!arguments.named.empty()) {
    throw Failure(what + " takes no argument '" + arguments.named.front().first + "'");
  }
  if (macro.varargs_slot >= 0) {
    slot(macro.varargs_slot) =
        make_tuple(sandbox, {arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken), arguments.positional.end()});
  } else if (arguments.positional.size() > taken) {
    throw Failure(what + " takes at most " + std::to_string(macro.parameters.size()) + " arguments, but got " +
                  std::to_string(arguments.positional.size()));
  }
}

}  // namespace sluice::text::jinja
