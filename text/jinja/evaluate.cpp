#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/loop.h"
#include "text/jinja/operators.h"
#include "text/jinja/test_functions.h"

namespace sluice::text::jinja {

Value& Interpreter::slot(const Reference& reference) {
  auto* activation = &activation_.as<Activation>();
  for (int i = 0; i < reference.hops; ++i) activation = &activation->outer.as<Activation>();
  return activation->slots[static_cast<size_t>(reference.slot)];
}

const Value* Interpreter::find_variable(const std::string& name) {
  const Value* found = variables_.as<Dict>().find(sandbox_, name);
  return found ? found : globals_.as<Dict>().find(sandbox_, name);
}

const Value& Interpreter::string_constant(const Expression& expression) {
  Value& constant = strings_[static_cast<size_t>(expression.constant)];
  if (constant.is_missing()) constant = make_string(sandbox_, expression.text);
  return constant;
}

Value Interpreter::evaluate(const Expression& expression) {
  const Nesting nesting(sandbox_);
  sandbox_.spend();
  line_ = expression.line;
  const auto child = [&](size_t i) { return evaluate(*expression.children[i]); };
  switch (expression.kind) {
    case ExpressionKind::kNone:
      return Value::none();
    case ExpressionKind::kBool:
      return Value::boolean(expression.integer != 0);
    case ExpressionKind::kInteger:
      return Value::integer(expression.integer);
    case ExpressionKind::kFloat:
      return Value::real(expression.real);
    case ExpressionKind::kString:
      return string_constant(expression);
    case ExpressionKind::kName:
      return evaluate_name(expression);
    case ExpressionKind::kTuple:
      return evaluate_items(expression, Kind::kTuple);
    case ExpressionKind::kList:
      return evaluate_items(expression, Kind::kList);
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
    case ExpressionKind::kAttribute: {
      const Value object = child(0);
      line_ = expression.line;
      return get_attribute(sandbox_, object, expression.text);
    }
    case ExpressionKind::kItem:
      return evaluate_item(expression);
    case ExpressionKind::kCall:
      return evaluate_call(expression, nullptr);
    case ExpressionKind::kFilter:
      return evaluate_filter(expression, child(0));
    case ExpressionKind::kTest:
      return evaluate_test(expression);
    case ExpressionKind::kConditional:
      return evaluate_conditional(expression);
    case ExpressionKind::kAnd: {
      Value left = child(0);
      return truthy(left) ? child(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = child(0);
      return truthy(left) ? left : child(1);
    }
    case ExpressionKind::kNot:
      return Value::boolean(!truthy(child(0)));
    case ExpressionKind::kNegate:
      return negate(child(0));
    case ExpressionKind::kPlus:
      return plus(child(0));
    case ExpressionKind::kConcatenate:
      return evaluate_concatenation(expression);
    case ExpressionKind::kCompare:
      return evaluate_compare(expression);
    case ExpressionKind::kSlice:
      throw Failure("a slice stands where a value is needed");
    case ExpressionKind::kNamespaceReference:
      throw Failure("an attribute to assign to stands where a value is needed");
    default:
      return evaluate_binary(expression);
  }
}

Value Interpreter::evaluate_name(const Expression& expression) {
  const Value& value = slot(expression.variable);
  return value.is_missing() ? make_undefined(sandbox_, "'" + expression.text + "' is undefined") : value;
}

Value Interpreter::evaluate_items(const Expression& expression, Kind kind) {
  std::vector<Value> items;
  items.reserve(expression.children.size());
  for (const auto& child : expression.children) items.push_back(evaluate(*child));
  return Value::make<List>(sandbox_, kind, std::move(items));
}

Value Interpreter::evaluate_dict(const Expression& expression) {
  Value dict = make_dict(sandbox_);
  for (size_t i = 0; i < expression.children.size(); i += 2) {
    const Value key = evaluate(*expression.children[i]);
    dict.as<Dict>().set(sandbox_, key, evaluate(*expression.children[i + 1]));
  }
  return dict;
}

Value Interpreter::evaluate_item(const Expression& expression) {
  const Value object = evaluate(*expression.children[0]);
  const Expression& index = *expression.children[1];
  if (index.kind != ExpressionKind::kSlice) {
    const Value at = evaluate(index);
    line_ = expression.line;
    return get_item(sandbox_, object, at);
  }
  const auto part = [&](size_t i) { return index.children[i] ? evaluate(*index.children[i]) : Value::none(); };
  const Value start = part(0), stop = part(1), step = part(2);
  line_ = expression.line;
  return get_slice(sandbox_, object, start, stop, step);
}

Value Interpreter::evaluate_conditional(const Expression& expression) {
  if (truthy(evaluate(*expression.children[0]))) return evaluate(*expression.children[1]);
  if (expression.children[2]) return evaluate(*expression.children[2]);
  return make_undefined(sandbox_, "the inline if of line " + std::to_string(expression.line) + " is false and has no else");
}

Value Interpreter::evaluate_binary(const Expression& expression) {
  const Value left = evaluate(*expression.children[0]);
  const Value right = evaluate(*expression.children[1]);
  line_ = expression.line;
  switch (expression.kind) {
    case ExpressionKind::kAdd:
      return add(sandbox_, left, right);
    case ExpressionKind::kSubtract:
      return subtract(left, right);
    case ExpressionKind::kMultiply:
      return multiply(sandbox_, left, right);
    case ExpressionKind::kDivide:
      return divide(left, right);
    case ExpressionKind::kFloorDivide:
      return floor_divide(left, right);
    case ExpressionKind::kModulo:
      return modulo(sandbox_, left, right);
    default:
      return power(sandbox_, left, right);
  }
}

// a < b < c evaluates b once, and c only when a < b.
Value Interpreter::evaluate_compare(const Expression& expression) {
  Value left = evaluate(*expression.children[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.children[i + 1]);
    line_ = expression.line;
    const std::string& symbol = expression.operators[i];
    const bool holds = symbol == "in"       ? contains(sandbox_, right, left)
                       : symbol == "not in" ? !contains(sandbox_, right, left)
                                            : compare(sandbox_, symbol, left, right);
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_concatenation(const Expression& expression) {
  std::string text;
  for (const auto& child : expression.children) {
    const Value value = evaluate(*child);
    if (value.is_string()) sandbox_.expect(text.size() + value.text().size());
    append_text(sandbox_, value, text);
  }
  return make_string(sandbox_, std::move(text));
}

Value Interpreter::evaluate_filter(const Expression& expression, const Value& subject) {
  Arguments arguments = evaluate_arguments(expression);
  line_ = expression.line;
  return apply_filter(expression.text, subject, arguments);
}

Value Interpreter::evaluate_test(const Expression& expression) {
  const Value subject = evaluate(*expression.children[0]);
  Arguments arguments = evaluate_arguments(expression);
  line_ = expression.line;
  return apply_test(expression.text, subject, arguments);
}

Arguments Interpreter::evaluate_arguments(const Expression& expression) {
  Arguments arguments;
  for (const auto& argument : expression.positional) arguments.positional.push_back(evaluate(*argument));
  for (const auto& [name, argument] : expression.named) arguments.named.emplace_back(name, evaluate(*argument));
  if (expression.star) {
    for_each(sandbox_, evaluate(*expression.star), [&](const Value& item) {
      arguments.positional.push_back(item);
      return true;
    });
  }
  if (expression.double_star) {
    const Value mapping = evaluate(*expression.double_star);
    if (!mapping.is(Kind::kDict)) throw Failure("** needs a mapping, not " + with_article(mapping));
    for (const auto& [key, value] : mapping.as<Dict>().entries()) {
      if (!key.is_string()) throw Failure("the names of arguments are strings, not " + type_name(key));
      for (const auto& [name, given] : arguments.named) {
        if (name == key.text()) throw Failure("the argument '" + name + "' is given twice");
      }
      sandbox_.spend(1 + arguments.named.size());
      arguments.named.emplace_back(std::string(key.text()), value);
    }
  }
  return arguments;
}

// `caller`: what a call block passes on.
Value Interpreter::evaluate_call(const Expression& expression, const Value* caller) {
  const Value callee = evaluate(*expression.children[0]);
  Arguments arguments = evaluate_arguments(expression);
  if (caller) arguments.named.emplace_back("caller", *caller);
  line_ = expression.line;
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  must_be_defined(callee);
  if (callee.is(Kind::kLoop)) {
    const auto [over] = arguments.take("loop", {"iterable"}, 1);
    auto& loop = callee.as<Loop>();
    if (!loop.recurse) throw Failure("loop() needs the for tag to say 'recursive'");
    return loop.recurse(over);
  }
  if (!callee.is(Kind::kCallable)) throw Failure(with_article(callee) + " cannot be called");
  const Nesting nesting(sandbox_);
  sandbox_.spend();
  return callee.as<Callable>().call(*this, arguments);
}

Value Interpreter::apply_filter(std::string_view name, const Value& subject, Arguments& arguments) {
  const Function filter = find_filter(name);
  if (!filter) throw Failure(unknown_filter(name));
  return filter(*this, subject, arguments);
}

Value Interpreter::apply_test(std::string_view name, const Value& subject, Arguments& arguments) {
  const Function test = find_test(name);
  if (!test) throw Failure(unknown_test(name));
  return test(*this, subject, arguments);
}

}  // namespace sluice::text::jinja
