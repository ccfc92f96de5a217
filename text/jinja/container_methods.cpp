#include <algorithm>
#include <array>

#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/parameters.h"

namespace sluice::text::jinja {
namespace {

Value get(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [key, otherwise] = arguments.take("get", {"key", "default"}, 1);
  const Value* found = self.as<Dict>().find(interpreter.sandbox(), key);
  if (found) return *found;
  return otherwise.is_missing() ? Value::none() : otherwise;
}

template <View view>
Value view_of(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  arguments.allow_none(view == View::kKeys ? "keys" : view == View::kValues ? "values" : "items");
  return Value::make<DictView>(interpreter.sandbox(), self, view);
}

// Nothing changes a dict or a list, so that a copy may be the same object.
Value copy(Interpreter&, const Value& self, Arguments& arguments) {
  arguments.allow_none("copy");
  return self;
}

Value count(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [wanted] = arguments.take("count", {"value"}, 1);
  int64_t found = 0;
  for (const Value& item : self.items()) found += item.same_as(wanted) || equal(interpreter.sandbox(), item, wanted) ? 1 : 0;
  return Value::integer(found);
}

Value index(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [wanted, start, stop] = arguments.take("index", {"value", "start", "stop"}, 1);
  const auto size = static_cast<int64_t>(self.items().size());
  const auto place = [&](const Value& value, int64_t otherwise) {
    const int64_t at = integer_or(value, otherwise, "index");
    return at < 0 ? std::max<int64_t>(0, at < -size ? 0 : at + size) : at;
  };
  const int64_t end = std::min(place(stop, size), size);
  for (int64_t i = place(start, 0); i < end; ++i) {
    const Value& item = self.items()[static_cast<size_t>(i)];
    if (item.same_as(wanted) || equal(interpreter.sandbox(), item, wanted)) return Value::integer(i);
  }
  throw Failure("index() did not find the value in the " + type_name(self));
}

}  // namespace

const NamedFunction* dict_methods() {
  static constexpr NamedFunction kMethods[] = {{"get", get},
                                               {"items", view_of<View::kItems>},
                                               {"keys", view_of<View::kKeys>},
                                               {"values", view_of<View::kValues>},
                                               {"copy", copy},
                                               {"fromkeys", nullptr},
                                               {"", nullptr}};
  return kMethods;
}

const NamedFunction* list_methods() {
  static constexpr NamedFunction kMethods[] = {{"count", count}, {"index", index}, {"copy", copy}, {"", nullptr}};
  return kMethods;
}

bool changes_list(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool changes_dict(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"clear", "pop", "popitem", "setdefault", "update"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace sluice::text::jinja
