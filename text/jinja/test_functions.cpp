#include "text/jinja/test_functions.h"

#include <unordered_map>

#include "base/text/strings.h"
#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/parameters.h"

namespace sluice::text::jinja {
namespace {

using Predicate = bool (*)(const Value&);

template <Predicate predicate>
Value of_value(Interpreter&, const Value& subject, Arguments& arguments) {
  arguments.allow_none("the test");
  return Value::boolean(predicate(subject));
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_boolean(const Value& v) { return v.is(Kind::kBool); }
bool is_true(const Value& v) { return v.is(Kind::kBool) && v.as_bool(); }
bool is_false(const Value& v) { return v.is(Kind::kBool) && !v.as_bool(); }
bool is_integer(const Value& v) { return v.is(Kind::kInt); }
bool is_float(const Value& v) { return v.is(Kind::kFloat); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is_string(); }
bool is_mapping(const Value& v) { return v.is(Kind::kDict); }
bool is_escaped(const Value& v) { return v.is_string() && v.as<String>().markup; }
// What has a length and elements by index. Undefined has both.
bool is_sequence(const Value& v) {
  return v.is_undefined() || v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kRange);
}

template <int64_t remainder>
Value is_even(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("the test");
  return Value::boolean(
      equal(interpreter.sandbox(), modulo(interpreter.sandbox(), subject, Value::integer(2)), Value::integer(remainder)));
}

Value divisibleby(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [number] = arguments.take("divisibleby", {"num"}, 1);
  return Value::boolean(equal(interpreter.sandbox(), modulo(interpreter.sandbox(), subject, number), Value::integer(0)));
}

Value sameas(Interpreter&, const Value& subject, Arguments& arguments) {
  const auto [other] = arguments.take("sameas", {"other"}, 1);
  return Value::boolean(subject.same_as(other));
}

Value in(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [container] = arguments.take("in", {"seq"}, 1);
  return Value::boolean(contains(interpreter.sandbox(), container, subject));
}

enum class Comparison { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

template <Comparison comparison>
Value compares(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
  if (!arguments.named.empty()) throw Failure("a comparison takes no named arguments");
  const auto [other] = arguments.take("the test", {"other"}, 1);
  return Value::boolean(compare(interpreter.sandbox(), kSymbols[static_cast<size_t>(comparison)], subject, other));
}

// The case of str(value).
Value is_case(Interpreter& interpreter, const Value& subject, Arguments& arguments, const char* method) {
  arguments.allow_none("the test");
  const Value text = make_string(interpreter.sandbox(), text_of(interpreter.sandbox(), subject));
  return interpreter.call(own_attribute(interpreter.sandbox(), text, method), arguments);
}

Value lower(Interpreter& i, const Value& subject, Arguments& a) { return is_case(i, subject, a, "islower"); }
Value upper(Interpreter& i, const Value& subject, Arguments& a) { return is_case(i, subject, a, "isupper"); }

template <Function (*find)(std::string_view)>
Value exists(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("the test");
  hash_of(interpreter.sandbox(), subject);  // what cannot be a key cannot be asked for
  return Value::boolean(subject.is_string() && find(subject.text()) != nullptr);
}

using Table = std::unordered_map<std::string_view, Function>;

const Table& table() {
  static const Table kTable = {{"odd", is_even<1>},
                               {"even", is_even<0>},
                               {"divisibleby", divisibleby},
                               {"defined", of_value<is_defined>},
                               {"undefined", of_value<is_undefined>},
                               {"filter", exists<find_filter>},
                               {"test", exists<find_test>},
                               {"none", of_value<is_none>},
                               {"boolean", of_value<is_boolean>},
                               {"false", of_value<is_false>},
                               {"true", of_value<is_true>},
                               {"integer", of_value<is_integer>},
                               {"float", of_value<is_float>},
                               {"lower", lower},
                               {"upper", upper},
                               {"string", of_value<is_string>},
                               {"mapping", of_value<is_mapping>},
                               {"number", of_value<is_number>},
                               {"sequence", of_value<is_sequence>},
                               {"iterable", of_value<is_iterable>},
                               {"callable", of_value<is_callable>},
                               {"sameas", sameas},
                               {"escaped", of_value<is_escaped>},
                               {"in", in},
                               {"==", compares<Comparison::kEqual>},
                               {"eq", compares<Comparison::kEqual>},
                               {"equalto", compares<Comparison::kEqual>},
                               {"!=", compares<Comparison::kUnequal>},
                               {"ne", compares<Comparison::kUnequal>},
                               {">", compares<Comparison::kGreater>},
                               {"gt", compares<Comparison::kGreater>},
                               {"greaterthan", compares<Comparison::kGreater>},
                               {">=", compares<Comparison::kGreaterOrEqual>},
                               {"ge", compares<Comparison::kGreaterOrEqual>},
                               {"<", compares<Comparison::kLess>},
                               {"lt", compares<Comparison::kLess>},
                               {"lessthan", compares<Comparison::kLess>},
                               {"<=", compares<Comparison::kLessOrEqual>},
                               {"le", compares<Comparison::kLessOrEqual>}};
  return kTable;
}

}  // namespace

bool is_callable(const Value& value) { return value.is(Kind::kCallable) || value.is(Kind::kLoop) || value.is_undefined(); }

Function find_test(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

std::string unknown_test(std::string_view name) { return "there is no test " + sluice::quoted(name.substr(0, 100)); }

}  // namespace sluice::text::jinja
