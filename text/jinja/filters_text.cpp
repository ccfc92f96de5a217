#include <algorithm>

#include "text/jinja/attribute_path.h"
#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/iterate.h"
#include "text/jinja/json_text.h"
#include "text/jinja/parameters.h"
#include "text/jinja/text_parts.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {
namespace {

// `subject` as text that keeps whether it is markup.
Value soft_text(Interpreter& interpreter, const Value& subject) {
  return subject.is_string() ? subject : make_string(interpreter.sandbox(), text_of(interpreter.sandbox(), subject));
}

// The filter is a method of str.
Value method(Interpreter& interpreter, const Value& subject, Arguments& arguments, std::string_view name) {
  const Value text = soft_text(interpreter, subject);
  return interpreter.call(own_attribute(interpreter.sandbox(), text, name), arguments);
}

Value upper(Interpreter& i, const Value& subject, Arguments& a) { return method(i, subject, a, "upper"); }
Value lower(Interpreter& i, const Value& subject, Arguments& a) { return method(i, subject, a, "lower"); }
Value capitalize(Interpreter& i, const Value& subject, Arguments& a) { return method(i, subject, a, "capitalize"); }

Value trim(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [characters] = arguments.take("trim", {"chars"});
  const Value text = soft_text(interpreter, subject);
  return make_string(interpreter.sandbox(), stripped(interpreter.sandbox(), text.text(), characters, true, true),
                     text.as<String>().markup);
}

Value center(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [width] = arguments.take("center", {"width"});
  Arguments passed{.positional = {width.is_missing() ? Value::integer(80) : width}, .named = {}};
  return method(interpreter, subject, passed, "center");
}

bool begins_word(char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || unicode::is_space(c); }

// Unlike the method of str a word goes on after an apostrophe or a digit.
Value title(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("title");
  const Value text = soft_text(interpreter, subject);
  const std::string_view from = text.text();
  interpreter.sandbox().expect(from.size() * 3);
  std::string out;
  for (size_t i = 0; i < from.size();) {
    const size_t begin = i;
    const bool separator = begins_word(unicode::next(from, i));
    const size_t first_end = i;
    for (size_t next = i; i < from.size() && begins_word(unicode::next(from, next)) == separator;) i = next;
    out += unicode::upper(from.substr(begin, first_end - begin));
    out += unicode::lower(from.substr(first_end, i - first_end));
  }
  return make_string(interpreter.sandbox(), std::move(out), text.as<String>().markup);
}

Value replace(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [old, fresh, limit] = arguments.take("replace", {"old", "new", "count"}, 2);
  Sandbox& sandbox = interpreter.sandbox();
  const int64_t most = limit.is_none() ? -1 : integer_or(limit, -1, "replace");
  return make_string(sandbox, replaced(sandbox, text_of(sandbox, subject), text_of(sandbox, old), text_of(sandbox, fresh), most));
}

Value string(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("string");
  return soft_text(interpreter, subject);
}

Value safe(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("safe");
  return make_string(interpreter.sandbox(), text_of(interpreter.sandbox(), subject), true);
}

Value escape(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("escape");
  if (subject.is_string() && subject.as<String>().markup) return subject;
  const std::string text = text_of(interpreter.sandbox(), subject);
  interpreter.sandbox().expect(text.size() * 5);
  return make_string(interpreter.sandbox(), escaped_html(text), true);
}

Value forceescape(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("forceescape");
  const std::string text = text_of(interpreter.sandbox(), subject);
  interpreter.sandbox().expect(text.size() * 5);
  return make_string(interpreter.sandbox(), escaped_html(text), true);
}

Value join(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [separator, attribute] = arguments.take("join", {"d", "attribute"});
  Sandbox& sandbox = interpreter.sandbox();
  const AttributePath path(sandbox, attribute);
  const std::string between = separator.is_missing() ? "" : text_of(sandbox, separator);
  std::string text;
  bool first = true;
  for_each(sandbox, subject, [&](const Value& item) {
    if (!first) text += between;
    first = false;
    sandbox.expect(text.size());
    append_text(sandbox, path.of(sandbox, item), text);
    return true;
  });
  return make_string(sandbox, std::move(text));
}

Value indent(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [width, first, blank] = arguments.take("indent", {"width", "first", "blank"});
  Sandbox& sandbox = interpreter.sandbox();
  const std::string from = std::string(string_of(subject, "indent")) + "\n";
  const int64_t spaces = width.is_string() ? 0 : std::max<int64_t>(0, integer_or(width, 4, "indent"));
  sandbox.expect(static_cast<size_t>(spaces));
  const std::string indention = width.is_string() ? std::string(width.text()) : std::string(static_cast<size_t>(spaces), ' ');
  std::string out = flag(first) ? indention : "";
  bool first_line = true;
  for (const std::string_view line : split_lines(sandbox, from, false)) {
    if (!first_line) out += '\n';
    if (!first_line && (flag(blank) || !line.empty())) out += indention;
    first_line = false;
    out += line;
    sandbox.expect(out.size());
  }
  return make_string(sandbox, std::move(out), subject.as<String>().markup);
}

Value wordcount(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  arguments.allow_none("wordcount");
  const std::string text = text_of(interpreter.sandbox(), subject);
  int64_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = unicode::next(text, i);
    const bool letter = c == '_' || unicode::is_alnum(c);
    if (letter && !in_word) ++words;
    in_word = letter;
  }
  return Value::integer(words);
}

Value truncate(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [length_value, kill_words, end_value, leeway_value] =
      arguments.take("truncate", {"length", "killwords", "end", "leeway"});
  const int64_t length = integer_or(length_value, 255, "truncate");
  const int64_t leeway = leeway_value.is_none() ? 5 : integer_or(leeway_value, 5, "truncate");
  const std::string end = end_value.is_missing() ? "..." : std::string(string_of(end_value, "truncate"));
  interpreter.sandbox().work(end.size());
  const auto end_length = static_cast<int64_t>(unicode::length(end));
  if (length < end_length) throw Failure("truncate needs a length of at least that of its end, " + std::to_string(end_length));
  if (leeway < 0) throw Failure("truncate needs a leeway of at least 0");
  const int64_t subject_length = length_of(subject);
  if (subject.is_string()) interpreter.sandbox().work(subject.text().size());
  if (subject_length < 0) throw Failure("truncate needs a str, not " + with_article(subject));
  if (subject_length <= length || subject_length - length <= leeway) return subject;
  const std::string_view text = string_of(subject, "truncate");
  std::string_view kept = text.substr(0, unicode::offset_of(text, static_cast<size_t>(length - end_length)));
  if (!flag(kill_words)) kept = kept.substr(0, kept.rfind(' '));
  return make_string(interpreter.sandbox(), std::string(kept) + end, subject.as<String>().markup);
}

Value format(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    throw Failure("format takes values in order or by name, not both");
  Sandbox& sandbox = interpreter.sandbox();
  const Value text = soft_text(interpreter, subject);
  if (arguments.named.empty()) return modulo(sandbox, text, make_tuple(sandbox, arguments.positional));
  const Value names = make_dict(sandbox);
  for (const auto& [name, value] : arguments.named) names.as<Dict>().set(sandbox, make_string(sandbox, name), value);
  return modulo(sandbox, text, names);
}

JsonStyle json_style(Interpreter& interpreter, const Value& ascii, const Value& indent_value, const Value& separators,
                     const Value& sort) {
  JsonStyle style{.ensure_ascii = flag(ascii), .sort_keys = flag(sort)};
  if (!indent_value.is_missing() && !indent_value.is_none()) {
    style.indented = true;
    style.item_separator = ",";
    const int64_t spaces =
        indent_value.is_string() ? 0 : std::max<int64_t>(0, integer_or(indent_value, 0, "the indent of tojson"));
    interpreter.sandbox().expect(static_cast<size_t>(spaces));
    interpreter.sandbox().work(indent_value.is_string() ? indent_value.text().size() : static_cast<size_t>(spaces));
    style.indent = indent_value.is_string() ? std::string(indent_value.text()) : std::string(static_cast<size_t>(spaces), ' ');
  }
  if (!separators.is_missing() && !separators.is_none()) {
    const std::vector<Value> parts = elements_of(interpreter.sandbox(), separators);
    if (parts.size() != 2) throw Failure("the separators of tojson are two: between elements, and after a key");
    style.item_separator = string_of(parts[0], "a separator of tojson");
    style.key_separator = string_of(parts[1], "a separator of tojson");
    interpreter.sandbox().work(style.item_separator.size() + style.key_separator.size());
  }
  return style;
}

Value tojson(Interpreter& interpreter, const Value& subject, Arguments& arguments) {
  const auto [ascii, indent_value, separators, sort] =
      arguments.take("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  const JsonStyle style = json_style(interpreter, ascii, indent_value, separators, sort);
  return make_string(interpreter.sandbox(), json_text(interpreter.sandbox(), subject, style));
}

}  // namespace

const NamedFunction* text_filters() {
  static constexpr NamedFunction kFilters[] = {{"upper", upper},       {"lower", lower},   {"capitalize", capitalize},
                                               {"trim", trim},         {"center", center}, {"title", title},
                                               {"replace", replace},   {"string", string}, {"safe", safe},
                                               {"escape", escape},     {"e", escape},      {"forceescape", forceescape},
                                               {"join", join},         {"indent", indent}, {"wordcount", wordcount},
                                               {"truncate", truncate}, {"format", format}, {"tojson", tojson},
                                               {"", nullptr}};
  return kFilters;
}

}  // namespace sluice::text::jinja
