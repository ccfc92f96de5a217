#include "text/jinja/attributes.h"

#include <algorithm>
#include <array>

#include "text/jinja/convert.h"
#include "text/jinja/cycler.h"
#include "text/jinja/loop.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja {
namespace {

Value unsupported(Interpreter&, const Value& self, Arguments&) {
  throw Failure("this method of " + with_article(self) + " is not supported here");
}

// The method `name` of `list`, bound to `self`; missing when it is not there.
Value bound(Sandbox& sandbox, const NamedFunction* list, std::string_view name, const Value& self) {
  constexpr std::array<std::string_view, 5> kTakeNames = {"split", "rsplit", "splitlines", "expandtabs", "format"};
  for (; !list->name.empty(); ++list) {
    if (list->name != name) continue;
    const bool takes_names = std::find(kTakeNames.begin(), kTakeNames.end(), name) != kTakeNames.end();
    return make_method(sandbox, name, self, list->function ? list->function : unsupported, takes_names);
  }
  return Value();
}

Value number_attribute(const Value& self, std::string_view name) {
  if (name == "real") return plus(self);
  if (name == "imag") return self.is(Kind::kFloat) ? Value::real(0) : Value::integer(0);
  if (self.is_integer() && name == "numerator") return plus(self);
  if (self.is_integer() && name == "denominator") return Value::integer(1);
  return Value();
}

Value range_attribute(const Range& range, std::string_view name) {
  if (name == "start") return Value::integer(range.start);
  if (name == "stop") return Value::integer(range.stop);
  if (name == "step") return Value::integer(range.step);
  return Value();
}

bool is_refused(const Value& object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) return true;
  return (object.is(Kind::kDict) && changes_dict(name)) || (object.is(Kind::kList) && changes_list(name));
}

Value undefined_attribute(Sandbox& sandbox, const Value& object, const Value& index) {
  const std::string what = object.is_none() ? "None" : with_article(object);
  if (index.is_string())
    return make_undefined(sandbox, what + " has no attribute '" + std::string(index.text().substr(0, 100)) + "'");
  return make_undefined(sandbox, what + " has no element " + (index.is_integer() ? text_of(sandbox, index) : "of that kind"));
}

// 0 <= index < size, counted from the end when negative; -1 when it is outside.
int64_t position(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// object[index]; missing where Python raises a TypeError or a LookupError.
Value element(Sandbox& sandbox, const Value& object, const Value& index) {
  if (object.is(Kind::kDict)) {
    if (index.is(Kind::kList) || index.is(Kind::kDict)) return Value();
    const Value* found = object.as<Dict>().find(sandbox, index);
    return found ? *found : Value();
  }
  if (!index.is_integer()) return Value();
  if (object.is_string()) {
    const auto& string = object.as<String>();
    const int64_t at = position(index.as_integer(), static_cast<int64_t>(string.length));
    if (at < 0) return Value();
    if (!string.is_ascii()) sandbox.work(string.text.size());
    const size_t begin = string.is_ascii() ? static_cast<size_t>(at) : unicode::offset_of(string.text, static_cast<size_t>(at));
    size_t end = begin;
    unicode::next(string.text, end);
    return make_string(sandbox, string.text.substr(begin, end - begin), string.markup);
  }
  if (object.is_sequence()) {
    const int64_t at = position(index.as_integer(), static_cast<int64_t>(object.items().size()));
    return at < 0 ? Value() : object.items()[static_cast<size_t>(at)];
  }
  if (object.is(Kind::kRange)) {
    const int64_t at = position(index.as_integer(), object.as<Range>().size);
    return at < 0 ? Value() : Value::integer(object.as<Range>().at(at));
  }
  return Value();
}

struct Slice {
  int64_t start, stop, step, size;
};

int64_t slice_part(const Value& part, int64_t otherwise) {
  if (part.is_none()) return otherwise;
  if (!part.is_integer()) throw Failure("the parts of a slice are ints or none, not " + type_name(part));
  return part.as_integer();
}

// As PySlice_AdjustIndices.
Slice adjusted(const Value& start, const Value& stop, const Value& step, int64_t length) {
  Slice s{};
  s.step = std::max(slice_part(step, 1), -INT64_MAX);
  if (s.step == 0) throw Failure("the step of a slice cannot be 0");
  const auto clamp = [&](int64_t index) {
    if (index < 0) index = index < -length ? -1 : index + length;
    return s.step < 0 ? std::clamp<int64_t>(index, -1, length - 1) : std::clamp<int64_t>(index, 0, length);
  };
  s.start = start.is_none() ? (s.step < 0 ? length - 1 : 0) : clamp(slice_part(start, 0));
  s.stop = stop.is_none() ? (s.step < 0 ? -1 : length) : clamp(slice_part(stop, 0));
  if (s.step < 0)
    s.size = s.stop < s.start ? (s.start - s.stop - 1) / -s.step + 1 : 0;
  else
    s.size = s.start < s.stop ? (s.stop - s.start - 1) / s.step + 1 : 0;
  return s;
}

Value slice_string(Sandbox& sandbox, const String& string, const Slice& s) {
  sandbox.work(string.text.size());
  if (string.is_ascii()) {
    if (s.step == 1)
      return make_string(sandbox, string.text.substr(static_cast<size_t>(s.start), static_cast<size_t>(s.size)), string.markup);
    std::string text;
    for (int64_t i = 0; i < s.size; ++i) text += string.text[static_cast<size_t>(s.start + i * s.step)];
    return make_string(sandbox, std::move(text), string.markup);
  }
  if (s.step == 1) {
    const size_t begin = unicode::offset_of(string.text, static_cast<size_t>(s.start));
    const std::string_view rest = std::string_view(string.text).substr(begin);
    return make_string(sandbox, std::string(rest.substr(0, unicode::offset_of(rest, static_cast<size_t>(s.size)))),
                       string.markup);
  }
  sandbox.expect(string.text.size() * 5);
  const std::u32string characters = unicode::decode(string.text);
  std::string text;
  for (int64_t i = 0; i < s.size; ++i) append_utf8(characters[static_cast<size_t>(s.start + i * s.step)], text);
  return make_string(sandbox, std::move(text), string.markup);
}

}  // namespace

Value own_attribute(Sandbox& sandbox, const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kString: {
      Value method = bound(sandbox, string_methods(), name, object);
      return method.is_missing() ? bound(sandbox, string_case_methods(), name, object) : method;
    }
    case Kind::kDict:
      return bound(sandbox, dict_methods(), name, object);
    case Kind::kTuple:
      if (object.as<List>().is_group && name == "grouper") return object.items()[0];
      if (object.as<List>().is_group && name == "list") return object.items()[1];
      return name == "copy" ? Value() : bound(sandbox, list_methods(), name, object);
    case Kind::kList:
      return bound(sandbox, list_methods(), name, object);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return number_attribute(object, name);
    case Kind::kRange:
      return range_attribute(object.as<Range>(), name);
    case Kind::kLoop:
      return loop_attribute(sandbox, object, name);
    case Kind::kCallable:
      return object.as<Callable>().attribute(sandbox, name);
    case Kind::kCycler:
      return cycler_attribute(sandbox, object, name);
    case Kind::kNamespace: {
      const Value* found = object.as<Namespace>().attributes.as<Dict>().find(sandbox, name);
      return found ? *found : Value();
    }
    default:
      return Value();
  }
}

// What an undefined value of jinja2 has all the same; asking it for anything else is an error.
bool is_of_undefined(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "__add__",   "__aiter__",         "__bool__",         "__call__",         "__class__",     "__complex__",  "__delattr__",
      "__dir__",   "__div__",           "__doc__",          "__eq__",           "__float__",     "__floordiv__", "__format__",
      "__ge__",    "__getattr__",       "__getattribute__", "__getitem__",      "__getstate__",  "__gt__",       "__hash__",
      "__init__",  "__init_subclass__", "__int__",          "__iter__",         "__le__",        "__len__",      "__lt__",
      "__mod__",   "__module__",        "__mul__",          "__ne__",           "__neg__",       "__new__",      "__pos__",
      "__pow__",   "__radd__",          "__rdiv__",         "__reduce__",       "__reduce_ex__", "__repr__",     "__rfloordiv__",
      "__rmod__",  "__rmul__",          "__rpow__",         "__rsub__",         "__rtruediv__",  "__setattr__",  "__sizeof__",
      "__slots__", "__str__",           "__sub__",          "__subclasshook__", "__truediv__"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

Value get_attribute(Sandbox& sandbox, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined) && !is_of_undefined(name)) must_be_defined(object);
  if (is_refused(object, name)) {
    return make_undefined(sandbox, "'" + std::string(name) + "' of " + with_article(object) + " is not safe to use");
  }
  must_be_defined(object);
  Value found = own_attribute(sandbox, object, name);
  if (!found.is_missing()) return found;
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.as<Dict>().find(sandbox, name)) return *value;
  }
  return undefined_attribute(sandbox, object, make_string(sandbox, std::string(name)));
}

Value get_item(Sandbox& sandbox, const Value& object, const Value& index) {
  must_be_defined(object);
  Value found = element(sandbox, object, index);
  if (!found.is_missing()) return found;
  if (index.is_string() && !is_refused(object, index.text())) {
    found = own_attribute(sandbox, object, index.text());
    if (!found.is_missing()) return found;
  }
  return undefined_attribute(sandbox, object, index);
}

Value get_slice(Sandbox& sandbox, const Value& object, const Value& start, const Value& stop, const Value& step) {
  must_be_defined(object);
  if (object.is_string()) {
    const auto& string = object.as<String>();
    return slice_string(sandbox, string, adjusted(start, stop, step, static_cast<int64_t>(string.length)));
  }
  if (object.is_sequence()) {
    const Slice s = adjusted(start, stop, step, static_cast<int64_t>(object.items().size()));
    sandbox.spend(static_cast<size_t>(s.size));
    sandbox.expect(static_cast<size_t>(s.size) * sizeof(Value));
    std::vector<Value> items;
    items.reserve(static_cast<size_t>(s.size));
    for (int64_t i = 0; i < s.size; ++i) items.push_back(object.items()[static_cast<size_t>(s.start + i * s.step)]);
    return Value::make<List>(sandbox, object.kind(), std::move(items));
  }
  if (object.is(Kind::kRange)) {
    const auto& range = object.as<Range>();
    const Slice s = adjusted(start, stop, step, range.size);
    int64_t stride = 0, first = 0, end = 0;
    const bool overflows = __builtin_mul_overflow(range.step, s.step, &stride) ||
                           __builtin_mul_overflow(s.start, range.step, &first) ||
                           __builtin_add_overflow(first, range.start, &first) ||
                           __builtin_mul_overflow(s.stop, range.step, &end) || __builtin_add_overflow(end, range.start, &end);
    if (overflows) throw Failure("an integer leaves the range of 64 bits");
    return Value::make<Range>(sandbox, first, end, stride, s.size);
  }
  throw Failure(with_article(object) + " cannot be sliced");
}

}  // namespace sluice::text::jinja
