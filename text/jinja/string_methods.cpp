#include <algorithm>

#include "text/jinja/convert.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/methods.h"
#include "text/jinja/parameters.h"
#include "text/jinja/text_parts.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

bool is_markup(const Value& self) { return self.as<String>().markup; }

Value result(Interpreter& interpreter, const Value& self, std::string text) {
  return make_string(interpreter.sandbox(), std::move(text), is_markup(self));
}

// ---- ends
// --------------------------------------------------------------------------------------------------------------------------

Value strip_ends(Interpreter& interpreter, const Value& self, Arguments& arguments, bool left, bool right) {
  const auto [characters] = arguments.take("strip", {"chars"});
  return result(interpreter, self, stripped(interpreter.sandbox(), self.text(), characters, left, right));
}

Value strip(Interpreter& i, const Value& self, Arguments& a) { return strip_ends(i, self, a, true, true); }
Value lstrip(Interpreter& i, const Value& self, Arguments& a) { return strip_ends(i, self, a, true, false); }
Value rstrip(Interpreter& i, const Value& self, Arguments& a) { return strip_ends(i, self, a, false, true); }

// The part of `self` between the code points `start` and `end`, as str methods count them; nothing when start lies after its
// end.
struct Part {
  std::string_view text;
  size_t skipped = 0;  // code points before it
  bool valid = true;
};

Part part_of(Sandbox& sandbox, const Value& self, const Value& start, const Value& end, std::string_view what) {
  const auto& string = self.as<String>();
  const auto length = static_cast<int64_t>(string.length);
  const auto place = [&](const Value& value, int64_t otherwise) {
    int64_t index = index_or(value, otherwise, what);
    if (index < 0) index = std::max<int64_t>(0, index < -length ? 0 : index + length);
    return index;
  };
  const int64_t first = place(start, 0), last = std::min(place(end, length), length);
  if (first > last) return {.text = {}, .skipped = 0, .valid = false};
  sandbox.work(string.text.size());
  const size_t begin =
      string.is_ascii() ? static_cast<size_t>(first) : unicode::offset_of(string.text, static_cast<size_t>(first));
  const size_t stop = string.is_ascii() ? static_cast<size_t>(last) : unicode::offset_of(string.text, static_cast<size_t>(last));
  return {.text = std::string_view(string.text).substr(begin, stop - begin), .skipped = static_cast<size_t>(first)};
}

Value has_end(Interpreter& interpreter, const Value& self, Arguments& arguments, bool at_start) {
  const char* what = at_start ? "startswith" : "endswith";
  const auto [wanted, start, end] = arguments.take(what, {"prefix", "start", "end"}, 1);
  const Part part = part_of(interpreter.sandbox(), self, start, end, what);
  const auto holds = [&](const Value& candidate) {
    const std::string_view text = string_of(candidate, what);
    return part.valid && (at_start ? part.text.starts_with(text) : part.text.ends_with(text));
  };
  if (!wanted.is(Kind::kTuple)) return Value::boolean(holds(wanted));
  return Value::boolean(std::any_of(wanted.items().begin(), wanted.items().end(), holds));
}

Value startswith(Interpreter& i, const Value& self, Arguments& a) { return has_end(i, self, a, true); }
Value endswith(Interpreter& i, const Value& self, Arguments& a) { return has_end(i, self, a, false); }

Value removeprefix(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [prefix] = arguments.take("removeprefix", {"prefix"}, 1);
  std::string_view text = self.text();
  if (text.starts_with(string_of(prefix, "removeprefix"))) text.remove_prefix(prefix.text().size());
  return result(interpreter, self, std::string(text));
}

Value removesuffix(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [suffix] = arguments.take("removesuffix", {"suffix"}, 1);
  std::string_view text = self.text();
  if (text.ends_with(string_of(suffix, "removesuffix"))) text.remove_suffix(suffix.text().size());
  return result(interpreter, self, std::string(text));
}

// ---- search
// -------------------------------------------------------------------------------------------------------------------------

// The index in code points; -1 when it is not there.
int64_t search(Interpreter& interpreter, const Value& self, Arguments& arguments, const char* what, bool from_end) {
  const auto [wanted, start, end] = arguments.take(what, {"sub", "start", "end"}, 1);
  const std::string_view text = string_of(wanted, what);
  const Part part = part_of(interpreter.sandbox(), self, start, end, what);
  if (!part.valid) return -1;
  const size_t found = from_end ? part.text.rfind(text) : part.text.find(text);
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(part.skipped + unicode::length(part.text.substr(0, found)));
}

Value must_be_found(int64_t index) {
  if (index < 0) throw Failure("the text is not there; find() would give -1");
  return Value::integer(index);
}

Value find(Interpreter& i, const Value& self, Arguments& a) { return Value::integer(search(i, self, a, "find", false)); }
Value rfind(Interpreter& i, const Value& self, Arguments& a) { return Value::integer(search(i, self, a, "rfind", true)); }
Value index(Interpreter& i, const Value& self, Arguments& a) { return must_be_found(search(i, self, a, "index", false)); }
Value rindex(Interpreter& i, const Value& self, Arguments& a) { return must_be_found(search(i, self, a, "rindex", true)); }

Value count(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [wanted, start, end] = arguments.take("count", {"sub", "start", "end"}, 1);
  const std::string_view text = string_of(wanted, "count");
  const Part part = part_of(interpreter.sandbox(), self, start, end, "count");
  if (!part.valid) return Value::integer(0);
  if (text.empty()) return Value::integer(static_cast<int64_t>(unicode::length(part.text)) + 1);
  int64_t found = 0;
  for (size_t at = part.text.find(text); at != std::string_view::npos; at = part.text.find(text, at + text.size())) ++found;
  return Value::integer(found);
}

Value replace(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [old, fresh, limit] = arguments.take("replace", {"old", "new", "count"}, 2);
  return result(interpreter, self,
                replaced(interpreter.sandbox(), self.text(), string_of(old, "replace"), string_of(fresh, "replace"),
                         integer_or(limit, -1, "replace")));
}

// ---- parts
// --------------------------------------------------------------------------------------------------------------------------

Value list_of(Interpreter& interpreter, const Value& self, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts)
    items.push_back(make_string(interpreter.sandbox(), std::string(part), is_markup(self)));
  return make_list(interpreter.sandbox(), std::move(items));
}

Value split_at(Interpreter& interpreter, const Value& self, Arguments& arguments, const char* what, bool from_end) {
  const auto [separator, limit] = arguments.take(what, {"sep", "maxsplit"});
  const int64_t most = integer_or(limit, -1, what);
  interpreter.sandbox().work(self.text().size());
  if (separator.is_missing() || separator.is_none())
    return list_of(interpreter, self, split_words(interpreter.sandbox(), self.text(), most, from_end));
  const std::string_view text = string_of(separator, what);
  if (text.empty()) throw Failure(std::string(what) + "() cannot split at an empty text");
  return list_of(interpreter, self, split_text(interpreter.sandbox(), self.text(), text, most, from_end));
}

Value split(Interpreter& i, const Value& self, Arguments& a) { return split_at(i, self, a, "split", false); }
Value rsplit(Interpreter& i, const Value& self, Arguments& a) { return split_at(i, self, a, "rsplit", true); }

Value splitlines(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [keep] = arguments.take("splitlines", {"keepends"});
  return list_of(interpreter, self, split_lines(interpreter.sandbox(), self.text(), flag(keep)));
}

Value partition_at(Interpreter& interpreter, const Value& self, Arguments& arguments, bool from_end) {
  const char* what = from_end ? "rpartition" : "partition";
  const auto [separator] = arguments.take(what, {"sep"}, 1);
  const std::string_view text = self.text(), at = string_of(separator, what);
  if (at.empty()) throw Failure(std::string(what) + "() cannot split at an empty text");
  const size_t found = from_end ? text.rfind(at) : text.find(at);
  const auto part = [&](std::string_view piece) { return result(interpreter, self, std::string(piece)); };
  if (found == std::string_view::npos) {
    return from_end ? make_tuple(interpreter.sandbox(), {part(""), part(""), part(text)})
                    : make_tuple(interpreter.sandbox(), {part(text), part(""), part("")});
  }
  return make_tuple(interpreter.sandbox(), {part(text.substr(0, found)), part(at), part(text.substr(found + at.size()))});
}

Value partition(Interpreter& i, const Value& self, Arguments& a) { return partition_at(i, self, a, false); }
Value rpartition(Interpreter& i, const Value& self, Arguments& a) { return partition_at(i, self, a, true); }

Value join(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const auto [items] = arguments.take("join", {"iterable"}, 1);
  std::string text;
  bool first = true;
  for_each(interpreter.sandbox(), items, [&](const Value& item) {
    if (!item.is_string()) throw Failure("join() needs str, not " + with_article(item));
    interpreter.sandbox().expect(text.size() + self.text().size() + item.text().size());
    if (!first) text += self.text();
    first = false;
    text += is_markup(self) && !is_markup(item) ? escaped_html(item.text()) : std::string(item.text());
    return true;
  });
  return result(interpreter, self, std::move(text));
}

}  // namespace

const NamedFunction* string_methods() {
  static constexpr NamedFunction kMethods[] = {{"strip", strip},
                                               {"lstrip", lstrip},
                                               {"rstrip", rstrip},
                                               {"startswith", startswith},
                                               {"endswith", endswith},
                                               {"removeprefix", removeprefix},
                                               {"removesuffix", removesuffix},
                                               {"find", find},
                                               {"rfind", rfind},
                                               {"index", index},
                                               {"rindex", rindex},
                                               {"count", count},
                                               {"replace", replace},
                                               {"split", split},
                                               {"rsplit", rsplit},
                                               {"splitlines", splitlines},
                                               {"partition", partition},
                                               {"rpartition", rpartition},
                                               {"join", join},
                                               {"format", format_method},
                                               {"format_map", nullptr},
                                               {"encode", nullptr},
                                               {"translate", nullptr},
                                               {"maketrans", nullptr},
                                               {"", nullptr}};
  return kMethods;
}

}  // namespace sluice::text::jinja
