#include <algorithm>

#include "base/text/strings.h"
#include "text/jinja/attribute_path.h"
#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/parameters.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

Value or_default(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [otherwise, boolean] = arguments.take("default", {"default_value", "boolean"});
  if (!subject.is_undefined() && !(flag(boolean) && !truthy(subject))) return subject;
  return otherwise.is_missing() ? make_string(interpreter.sandbox(), "") : otherwise;
}

Value length(Interpreter&, const Value& subject, Arguments& arguments) {
  arguments.allow_none("length");
  const int64_t count = length_of(subject);
  if (count < 0) throw Failure(with_article(subject) + " has no length");
  return Value::integer(count);
}

Value first(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("first");
  Cursor cursor(interpreter.sandbox(), subject);
  Value element;
  return cursor.next(element) ? element : make_undefined(interpreter.sandbox(), "the sequence has no first element: it is empty");
}

// The elements from the back to the front.
std::vector<Value> reversed(Interpreter& interpreter, const Value& subject) {
  std::vector<Value> items = elements_of(interpreter.sandbox(), subject);
  std::reverse(items.begin(), items.end());
  return items;
}

Value last(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("last");
  if (!is_reversible(subject)) throw Failure(with_article(subject) + " has no last element; make a list of it first");
  if (subject.is_string() || subject.is_sequence() || subject.is(Kind::kRange)) {
    Value item = get_item(interpreter.sandbox(), subject, Value::integer(-1));
    if (!item.is_undefined() || length_of(subject) > 0) return item;
  } else if (const std::vector<Value> items = reversed(interpreter, subject); !items.empty()) {
    return items[0];
  }
  return make_undefined(interpreter.sandbox(), "the sequence has no last element: it is empty");
}

Value list(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("list");
  return make_list(interpreter.sandbox(), elements_of(interpreter.sandbox(), subject));
}

Value reverse(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("reverse");
  if (subject.is_string()) return get_slice(interpreter.sandbox(), subject, Value::none(), Value::none(), Value::integer(-1));
  if (!is_iterable(subject)) throw Failure(with_article(subject) + " cannot be reversed");
  std::vector<Value> items = reversed(interpreter, subject);
  if (!is_reversible(subject)) return make_list(interpreter.sandbox(), std::move(items));
  return make_iterator(interpreter.sandbox(), "reverse iterator", std::move(items));
}

Value items(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("items");
  return make_lazy(interpreter.sandbox(), [&sandbox = interpreter.sandbox(), subject] {
    std::vector<Value> pairs;
    if (subject.is_undefined()) return pairs;
    if (!subject.is(Kind::kDict)) throw Failure("items needs a mapping, not " + with_article(subject));
    for (const auto& [key, value] : subject.as<Dict>().entries()) pairs.push_back(make_pair(sandbox, key, value));
    return pairs;
  });
}

// ---- order
// --------------------------------------------------------------------------------------------------------------------------

struct Keyed {
  Value key, value;
};

// Equal elements keep their order, also downwards.
std::vector<Value> sorted(Sandbox& sandbox, std::vector<Keyed> elements, bool descending) {
  const auto before = [&](const Keyed& a, const Keyed& b) { return less(sandbox, a.key, b.key); };
  std::stable_sort(elements.begin(), elements.end(),
                   [&](const Keyed& a, const Keyed& b) { return descending ? before(b, a) : before(a, b); });
  std::vector<Value> values;
  values.reserve(elements.size());
  for (Keyed& element : elements) values.push_back(std::move(element.value));
  return values;
}

Value sort(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [descending, by_case, attribute] = arguments.take("sort", {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = flag(by_case);
  Sandbox& sandbox = interpreter.sandbox();
  std::vector<AttributePath> paths;  // "age,name": by the first, then by the second
  if (attribute.is_string()) {
    for (const std::string& name : split(attribute.text(), ',')) paths.emplace_back(sandbox, make_string(sandbox, name));
  } else {
    paths.emplace_back(sandbox, attribute);
  }
  std::vector<Keyed> elements;
  for_each(sandbox, subject, [&](const Value& item) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) key.push_back(comparison_key(sandbox, path.of(sandbox, item), case_sensitive));
    elements.push_back({make_list(sandbox, std::move(key)), item});
    return true;
  });
  return make_list(sandbox, sorted(sandbox, std::move(elements), flag(descending)));
}

Value dictsort(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [case_sensitive, by, descending] = arguments.take("dictsort", {"case_sensitive", "by", "reverse"});
  const std::string_view what = by.is_missing() ? "key" : by.is_string() ? by.text() : "";
  if (what != "key" && what != "value") throw Failure("dictsort sorts by 'key' or 'value'");
  must_be_defined(subject);
  if (!subject.is(Kind::kDict)) throw Failure("dictsort needs a mapping, not " + with_article(subject));
  Sandbox& sandbox = interpreter.sandbox();
  std::vector<Keyed> elements;
  for (const auto& [key, value] : subject.as<Dict>().entries()) {
    elements.push_back(
        {comparison_key(sandbox, what == "key" ? key : value, flag(case_sensitive)), make_pair(sandbox, key, value)});
  }
  return make_list(sandbox, sorted(sandbox, std::move(elements), flag(descending)));
}

Value extreme(Interpreter& interpreter, const Value& subject, Arguments& arguments, bool largest) {
  const auto [by_case, attribute] = arguments.take(largest ? "max" : "min", {"case_sensitive", "attribute"});
  const bool case_sensitive = flag(by_case);
  Sandbox& sandbox = interpreter.sandbox();
  const AttributePath path(sandbox, attribute);
  Keyed best;
  for_each(sandbox, subject, [&](const Value& item) {
    Value key = comparison_key(sandbox, path.of(sandbox, item), case_sensitive);
    if (best.key.is_missing() || (largest ? less(sandbox, best.key, key, ">") : less(sandbox, key, best.key)))
      best = {std::move(key), item};
    return true;
  });
  return best.key.is_missing() ? make_undefined(sandbox, "the sequence has no extreme element: it is empty") : best.value;
}

Value min(Interpreter& i, const Value& subject, Arguments& a) { return extreme(i, subject, a, false); }
Value max(Interpreter& i, const Value& subject, Arguments& a) { return extreme(i, subject, a, true); }

Value sum(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [attribute, start] = arguments.take("sum", {"attribute", "start"});
  const AttributePath path(interpreter.sandbox(), attribute);
  Value total = start.is_missing() ? Value::integer(0) : start;
  if (total.is_string()) throw Failure("sum does not add str; use join");
  for_each(interpreter.sandbox(), subject, [&](const Value& item) {
    total = add(interpreter.sandbox(), total, path.of(interpreter.sandbox(), item));
    return true;
  });
  return total;
}

// ---- groups
// --------------------------------------------------------------------------------------------------------------------------

std::vector<Value> batches(Sandbox& sandbox, const Value& subject, const Value& size_value, const Value& fill) {
  const bool fills = !fill.is_missing() && !fill.is_none();
  std::vector<Value> rows, row;
  const auto full = [&] { return equal(sandbox, Value::integer(static_cast<int64_t>(row.size())), size_value); };
  for_each(sandbox, subject, [&](const Value& item) {
    if (full()) rows.push_back(make_list(sandbox, std::exchange(row, {})));
    row.push_back(item);
    return true;
  });
  if (row.empty()) return rows;
  const int64_t size = fills ? integer_or(size_value, 0, "batch") : 0;
  if (size > 0) sandbox.expect(static_cast<size_t>(std::min<int64_t>(size, 1LL << 40)) * sizeof(Value));
  while (static_cast<int64_t>(row.size()) < size) row.push_back(fill);
  rows.push_back(make_list(sandbox, std::move(row)));
  return rows;
}

Value batch(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [size, fill] = arguments.take("batch", {"linecount", "fill_with"}, 1);
  return make_lazy(interpreter.sandbox(), [&sandbox = interpreter.sandbox(), subject, size = size, fill = fill] {
    return batches(sandbox, subject, size, fill);
  });
}

std::vector<Value> slices(Sandbox& sandbox, const Value& subject, const Value& count_value, const Value& fill) {
  const std::vector<Value> all = elements_of(sandbox, subject);
  const int64_t count = integer_or(count_value, 0, "slice");
  if (count == 0) throw Failure("slice needs at least one slice");
  const auto size = static_cast<int64_t>(all.size());
  std::vector<Value> parts;
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    sandbox.spend();
    const bool longer = i < size % count;
    const int64_t end = begin + size / count + (longer ? 1 : 0);
    std::vector<Value> part(all.begin() + begin, all.begin() + end);
    if (!fill.is_missing() && !fill.is_none() && !longer) part.push_back(fill);
    parts.push_back(make_list(sandbox, std::move(part)));
    begin = end;
  }
  return parts;
}

Value slice(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [count, fill] = arguments.take("slice", {"slices", "fill_with"}, 1);
  return make_lazy(interpreter.sandbox(), [&sandbox = interpreter.sandbox(), subject, count = count, fill = fill] {
    return slices(sandbox, subject, count, fill);
  });
}

std::vector<Value> unique_elements(Sandbox& sandbox, const Value& subject, bool case_sensitive, const Value& attribute) {
  const AttributePath path(sandbox, attribute);
  const Value seen = make_dict(sandbox);
  std::vector<Value> kept;
  for_each(sandbox, subject, [&](const Value& item) {
    const Value key = comparison_key(sandbox, path.of(sandbox, item), case_sensitive);
    if (seen.as<Dict>().find(sandbox, key)) return true;
    seen.as<Dict>().set(sandbox, key, Value::none());
    kept.push_back(item);
    return true;
  });
  return kept;
}

Value unique(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [case_sensitive, attribute] = arguments.take("unique", {"case_sensitive", "attribute"});
  return make_lazy(interpreter.sandbox(),
                   [&sandbox = interpreter.sandbox(), subject, sensitive = flag(case_sensitive), attribute = attribute] {
                     return unique_elements(sandbox, subject, sensitive, attribute);
                   });
}

Value groupby(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [attribute, otherwise, by_case] = arguments.take("groupby", {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = flag(by_case);
  Sandbox& sandbox = interpreter.sandbox();
  const AttributePath path(sandbox, attribute);
  const Value fallback = otherwise;
  const auto key_of = [&](const Value& item) {
    return comparison_key(sandbox, path.of(sandbox, item, fallback), case_sensitive);
  };
  std::vector<Keyed> elements;
  for_each(sandbox, subject, [&](const Value& item) {
    elements.push_back({key_of(item), item});
    return true;
  });
  std::vector<Value> groups, members;
  Value current;
  const auto close = [&] {
    if (members.empty()) return;
    const Value grouper = case_sensitive ? current : path.of(sandbox, members[0], fallback);
    const Value values = make_list(sandbox, std::exchange(members, {}));
    groups.push_back(make_pair(sandbox, grouper, values));
    groups.back().as<List>().is_group = true;
  };
  for (const Value& item : sorted(sandbox, std::move(elements), false)) {
    Value key = key_of(item);
    if (members.empty() || !equal(sandbox, key, current)) {
      close();
      current = std::move(key);
    }
    members.push_back(item);
  }
  close();
  return make_list(sandbox, std::move(groups));
}

}  // namespace

const NamedFunction* sequence_filters() {
  static constexpr NamedFunction kFilters[] = {
      {"default", or_default}, {"d", or_default},  {"length", length},   {"count", length}, {"first", first},
      {"last", last},          {"list", list},     {"reverse", reverse}, {"items", items},  {"sort", sort},
      {"dictsort", dictsort},  {"min", min},       {"max", max},         {"sum", sum},      {"batch", batch},
      {"slice", slice},        {"unique", unique}, {"groupby", groupby}, {"", nullptr}};
  return kFilters;
}

}  // namespace sluice::text::jinja
