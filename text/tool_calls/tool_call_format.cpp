#include "text/tool_calls/tool_call_format.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_marks.h"

namespace sluice::text {
namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";  // what Llama 3 may write before a call

struct NamedFormat {
  std::string name;
  ToolCallFormat format;
};

const std::vector<NamedFormat>& named_formats() {
  static const std::vector<NamedFormat> formats = {
      {"hermes", {.open = "<tool_call>", .close = "</tool_call>"}},
      {"mistral", {.open = "[TOOL_CALLS]", .close = {}}},
      {"llama3", {.open = {}, .close = {}, .arguments_key = "parameters"}},
      {"openai", {.open = {}, .close = {}}},
  };
  return formats;
}

ToolCall faulty(std::string fault) { return {.fault = std::move(fault)}; }

// The arguments of a call; says in `fault` why there are none.
Json arguments_of(const Json& call, const std::string& key, std::string& fault) {
  const auto found = call.find(key);
  if (found == call.end()) {
    fault = "the call has no " + sluice::quoted(key);
    return Json::object();
  }
  Json arguments = *found;
  if (arguments.is_string()) {
    try {
      arguments = parse_json(found->get_ref<const std::string&>(), key);
    } catch (const UserError&) {
      arguments = nullptr;
    }
  }
  if (arguments.is_object()) return arguments;
  fault = sluice::quoted(key) + " of the call is no object";
  return Json::object();
}

ToolCall call_of(const Json& value, const ToolCallFormat& format) {
  if (!value.is_object()) return faulty("the call is no JSON object");
  const auto function = value.find("function");
  const bool is_wrapped = function != value.end() && function->is_object() && !value.contains(format.name_key);
  const Json& inner = is_wrapped ? *function : value;
  ToolCall call;
  if (const auto id = value.find("id"); id != value.end() && id->is_string()) call.id = id->get<std::string>();
  const auto name = inner.find(format.name_key);
  if (name == inner.end() || !name->is_string()) {
    call.fault = "the call has no " + sluice::quoted(format.name_key) + " that is a string";
    return call;
  }
  call.name = name->get<std::string>();
  call.arguments = arguments_of(inner, format.arguments_key, call.fault);
  return call;
}

void add_calls(const Json& value, const ToolCallFormat& format, std::vector<ToolCall>& calls) {
  if (!value.is_array()) return calls.push_back(call_of(value, format));
  if (value.empty()) return calls.push_back(faulty("the list of calls is empty"));
  for (const Json& one : value) calls.push_back(call_of(one, format));
}

// JSON, or several of them one after the other.
void add_calls(std::string_view json, const ToolCallFormat& format, std::vector<ToolCall>& calls) {
  for (json = trim(json); calls.size() <= ToolCallFormat::kMostCalls;) {
    const size_t end = end_of_json(json, 0);
    const std::string_view more = end == std::string_view::npos ? std::string_view() : trim(json.substr(end));
    const bool goes_on = more.starts_with('{') || more.starts_with('[');
    try {
      add_calls(parse_json(goes_on ? json.substr(0, end) : json, "call"), format, calls);
    } catch (const UserError& error) {
      calls.push_back(faulty("the call is no JSON: " + reason_of(error)));
    }
    if (!goes_on) return;
    json = more;
  }
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Takes the thinking off the beginning of `rest`. `closes_alone`: the closing mark ends thinking that nothing has opened.
std::string take_thinking(std::string_view& rest, const ThinkingMarks& marks, bool begins_inside, bool closes_alone) {
  const std::string_view turn = trim(rest);
  const bool opens = turn.starts_with(marks.open);
  const size_t end = turn.find(marks.close);
  const bool is_open = opens || begins_inside;
  if (!is_open && (end == std::string_view::npos || !closes_alone)) return {};
  std::string_view thinking = turn.substr(0, end);
  if (opens) thinking.remove_prefix(std::min(marks.open.size(), thinking.size()));
  rest = end == std::string_view::npos ? std::string_view() : turn.substr(end + marks.close.size());
  return std::string(trim(thinking));
}

// Calls by name after marks: text, calls, text, calls, ...
void parse_named(std::string_view rest, const ToolCallFormat& format, const Json& tools, ParsedTurn& parsed) {
  std::vector<std::string> texts;
  const auto keep = [&](std::string_view text) {
    if (!trim(text).empty()) texts.emplace_back(trim(text));
  };
  const bool is_bare = !call_marks::is_distinct(format.open);
  if (is_bare && trim(rest).starts_with(kPythonTag)) rest = trim(rest).substr(kPythonTag.size());
  const auto open_from = [&](size_t from) {
    if (!is_bare) return call_marks::find_mark(format.open, rest, from);
    const size_t begin = rest.find_first_not_of(" \t\r\n", from);  // only at the beginning, and if a name follows
    if (from > 0 || begin == std::string_view::npos) return call_marks::Place{};
    const call_marks::Place place = call_marks::mark_at(trim(format.open), rest, begin);
    return place.is_there() && format.by_name->begins_at(rest, place.end) ? place : call_marks::Place{};
  };
  size_t at = 0;
  while (parsed.calls.size() <= ToolCallFormat::kMostCalls) {
    const call_marks::Place open = open_from(at);
    keep(rest.substr(at, open.is_there() ? open.begin - at : open.begin));
    if (!open.is_there()) break;
    const size_t first = parsed.calls.size();
    at = format.by_name->read(rest, open.end, format.close, tools, parsed.calls);
    for (size_t i = first; i < parsed.calls.size(); ++i) {
      if (parsed.calls[i].id.empty()) parsed.calls[i].id = open.id;
    }
    const bool is_faulty = !parsed.calls.back().fault.empty();
    if (is_faulty) {  // what is left of it is neither text nor call
      const call_marks::Place next = is_bare ? call_marks::Place{} : call_marks::find_mark(format.open, rest, at);
      at = next.is_there() ? next.begin : rest.size();
    }
  }
  parsed.text = join(texts, "\n");
}

// A turn between marks: text, call, text, call, ...
void parse_marked(std::string_view rest, const ToolCallFormat& format, ParsedTurn& parsed) {
  std::vector<std::string> texts;
  const auto keep = [&](std::string_view text) {
    if (!trim(text).empty()) texts.emplace_back(trim(text));
  };
  while (parsed.calls.size() <= ToolCallFormat::kMostCalls) {
    const size_t open = rest.find(format.open);
    keep(rest.substr(0, open));
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open + format.open.size());
    const size_t close = format.close.empty() ? rest.size() : find_outside_strings(rest, format.close);
    if (close == std::string_view::npos) {
      parsed.calls.push_back(faulty("the call does not end with " + format.close));
      break;
    }
    add_calls(rest.substr(0, close), format, parsed.calls);
    rest.remove_prefix(close + format.close.size());
  }
  parsed.text = join(texts, "\n");
}

// Whether a text that is no JSON was meant as a call: the name comes first in it.
bool looks_like_call(std::string_view text, const std::string& name_key) {
  const size_t begin = text.find_first_not_of("[{ \t\r\n");
  return begin != 0 && begin != std::string_view::npos &&
         (text.substr(begin).starts_with("\"" + name_key + "\"") || text.substr(begin).starts_with("\"function\""));
}

bool is_call(const Json& value, const std::string& name_key) {
  const Json& one = value.is_array() && !value.empty() ? value.front() : value;
  return one.is_object() && (one.contains(name_key) || (one.contains("function") && one["function"].is_object()));
}

// A turn that is a call as a whole, or none.
void parse_bare(std::string_view rest, const ToolCallFormat& format, ParsedTurn& parsed) {
  std::string_view text = trim(rest);
  const bool is_tagged = text.starts_with(kPythonTag);
  if (is_tagged) text.remove_prefix(kPythonTag.size());
  if (is_tagged || looks_like_call(text, format.name_key)) return add_calls(text, format, parsed.calls);
  if (text.starts_with('{') || text.starts_with('[')) {
    try {
      const Json value = parse_json(text, "turn");
      if (is_call(value, format.name_key)) return add_calls(value, format, parsed.calls);
    } catch (const UserError&) {
      // an answer that begins with a brace
    }
  }
  parsed.text = text;
}

}  // namespace

ParsedTurn ToolCallFormat::parse(std::string_view turn, bool begins_thinking, const Json& tools) const {
  ParsedTurn parsed;
  std::string_view rest = turn;
  parsed.thinking =
      take_thinking(rest, thinking, begins_thinking, /*closes_alone=*/!by_name || !holds(by_name->between, thinking.close));
  if (by_name)
    parse_named(rest, *this, tools, parsed);
  else if (open.empty())
    parse_bare(rest, *this, parsed);
  else
    parse_marked(rest, *this, parsed);
  if (parsed.calls.size() > kMostCalls) {
    parsed.calls.resize(kMostCalls);
    parsed.calls.push_back(faulty("the turn has more than " + std::to_string(kMostCalls) + " calls"));
  }
  return parsed;
}

const std::vector<std::string>& tool_call_formats() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const NamedFormat& one : named_formats()) all.push_back(one.name);
    return all;
  }();
  return names;
}

ToolCallFormat tool_call_format(const std::string& name) {
  const auto found = std::ranges::find(named_formats(), name, &NamedFormat::name);
  if (found != named_formats().end()) return found->format;
  throw UserError(sluice::quoted(name) + " is no format of tool calls", "one of " + join(tool_call_formats(), ", "));
}

}  // namespace sluice::text
