#include "text/jinja/attribute_path.h"
#include "text/jinja/attributes.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/parameters.h"

namespace sluice::text::jinja {
namespace {

// The arguments after the first `count`, for the filter or test that is applied to each element.
Arguments rest_of(const Arguments& arguments, size_t count) {
  return {.positional = {arguments.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, arguments.positional.size())),
                         arguments.positional.end()},
          .named = arguments.named};
}

std::string name_of(const Value& value, std::string_view what) {
  must_be_defined(value);
  return std::string(string_of(value, what));
}

// map('upper'), map(attribute='name', default=...)
struct Mapping final : Iterator {
  Mapping(Interpreter& runner, const Value& over, Arguments given)
      : Iterator("generator"), interpreter(runner), cursor(runner.sandbox(), over), arguments(std::move(given)) {}
  void clear() override {
    cursor = Cursor();
    arguments = {};
    otherwise = Value();
    path = AttributePath();
  }

  bool next(Value& element) override {
    if (!prepared) prepare();
    Value item;
    if (!cursor.next(item)) return false;
    if (by_attribute) {
      element = path.of(interpreter.sandbox(), item, otherwise);
    } else {
      Arguments passed = rest_of(arguments, 1);
      element = interpreter.apply_filter(filter, item, passed);
    }
    return true;
  }

  // Not before the first element is wanted: the reference finds what is wrong then.
  void prepare() {
    prepared = true;
    Value attribute = arguments.positional.empty() ? arguments.pop("attribute") : Value();
    by_attribute = !attribute.is_missing();
    if (!by_attribute) {
      if (arguments.positional.empty()) throw Failure("map needs the name of a filter, or attribute=");
      filter = name_of(arguments.positional[0], "map");
      return;
    }
    otherwise = arguments.pop("default");
    arguments.allow_names({});
    path = AttributePath(interpreter.sandbox(), attribute);
  }

  Interpreter& interpreter;
  Cursor cursor;
  Arguments arguments;
  std::string filter;
  AttributePath path;
  Value otherwise;
  bool prepared = false, by_attribute = false;
};

// select, reject, selectattr, rejectattr
struct Selection final : Iterator {
  Selection(Interpreter& runner, const Value& over, Arguments given, bool wants, bool attribute)
      : Iterator("generator"),
        interpreter(runner),
        cursor(runner.sandbox(), over),
        arguments(std::move(given)),
        wanted(wants),
        by_attribute(attribute) {}
  void clear() override {
    cursor = Cursor();
    arguments = {};
    path = AttributePath();
  }

  bool next(Value& element) override {
    if (!prepared) prepare();
    while (cursor.next(element)) {
      if (passes(element) == wanted) return true;
    }
    return false;
  }

  bool passes(const Value& element) {
    const Value subject = path.of(interpreter.sandbox(), element);
    if (test.empty()) return truthy(subject);
    Arguments passed = rest_of(arguments, by_attribute ? 2 : 1);
    return truthy(interpreter.apply_test(test, subject, passed));
  }

  void prepare() {
    prepared = true;
    if (by_attribute) {
      if (arguments.positional.empty()) throw Failure("selectattr and rejectattr need the name of an attribute");
      path = AttributePath(interpreter.sandbox(), arguments.positional[0]);
    }
    const size_t at = by_attribute ? 1 : 0;
    if (arguments.positional.size() > at) test = name_of(arguments.positional[at], "select");
  }

  Interpreter& interpreter;
  Cursor cursor;
  Arguments arguments;
  AttributePath path;
  std::string test;
  bool wanted, by_attribute;
  bool prepared = false;
};

// What is empty gives nothing and is not looked at further; what cannot be gone through fails only when it is.
const Value& checked(const Value& subject, Value& empty, Sandbox& sandbox) {
  if (truthy(subject)) return subject;
  empty = make_list(sandbox, {});
  return empty;
}

Value map(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  Value empty;
  const Value& over = checked(subject, empty, interpreter.sandbox());
  if (&over == &empty) return make_iterator(interpreter.sandbox(), "generator", {});
  return Value::make<Mapping>(interpreter.sandbox(), interpreter, over, arguments);
}

Value selection(Interpreter& interpreter, const Value& subject, const Arguments& arguments, bool wanted, bool by_attribute) {
  Value empty;
  const Value& over = checked(subject, empty, interpreter.sandbox());
  if (&over == &empty) return make_iterator(interpreter.sandbox(), "generator", {});
  return Value::make<Selection>(interpreter.sandbox(), interpreter, over, arguments, wanted, by_attribute);
}

Value select(Interpreter& i, const Value& subject, Arguments& a) { return selection(i, subject, a, true, false); }
Value reject(Interpreter& i, const Value& subject, Arguments& a) { return selection(i, subject, a, false, false); }
Value selectattr(Interpreter& i, const Value& subject, Arguments& a) { return selection(i, subject, a, true, true); }
Value rejectattr(Interpreter& i, const Value& subject, Arguments& a) { return selection(i, subject, a, false, true); }

Value attr(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [name] = arguments.take("attr", {"name"}, 1);
  must_be_defined(subject);
  const std::string_view wanted = string_of(name, "attr");
  Value found = own_attribute(interpreter.sandbox(), subject, wanted);
  return found.is_missing()
             ? make_undefined(interpreter.sandbox(), with_article(subject) + " has no attribute '" + std::string(wanted) + "'")
             : found;
}

}  // namespace

const NamedFunction* selection_filters() {
  static constexpr NamedFunction kFilters[] = {
      {"map", map},   {"select", select}, {"reject", reject}, {"selectattr", selectattr}, {"rejectattr", rejectattr},
      {"attr", attr}, {"", nullptr}};
  return kFilters;
}

}  // namespace sluice::text::jinja
