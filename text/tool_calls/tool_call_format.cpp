#include "text/tool_calls/tool_call_format.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::text {
namespace {

constexpr std::string_view kOpenThinking = "<think>", kCloseThinking = "</think>";
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

std::string reason_of(const UserError& error) {
  const Problem& problem = error.problems().front();
  if (problem.caret.empty()) return problem.message;
  return problem.caret + " at character " + std::to_string(problem.where.column) +
         (problem.where.line > 1 ? " of line " + std::to_string(problem.where.line) : "");
}

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

void add_calls(std::string_view json, const ToolCallFormat& format, std::vector<ToolCall>& calls) {
  try {
    add_calls(parse_json(trim(json), "call"), format, calls);
  } catch (const UserError& error) {
    calls.push_back(faulty("the call is no JSON: " + reason_of(error)));
  }
}

// Where `mark` stands in `text` outside of the strings of JSON. A string that does not end in its line is none.
size_t find_outside_strings(std::string_view text, std::string_view mark) {
  bool in_string = false;
  size_t within = std::string_view::npos;  // the first mark in the string at hand
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(mark)) {
      if (!in_string) return i;
      within = std::min(within, i);
    }
    if (in_string && text[i] == '\n') {
      if (within != std::string_view::npos) return within;
      in_string = false;
    } else if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
      within = std::string_view::npos;
    }
  }
  return within;
}

// Takes the thinking off the beginning of `rest`.
std::string take_thinking(std::string_view& rest, bool begins_inside) {
  const std::string_view turn = trim(rest);
  const bool opens = turn.starts_with(kOpenThinking);
  const size_t end = turn.find(kCloseThinking);
  if (end == std::string_view::npos && !opens && !begins_inside) return {};
  std::string_view thinking = turn.substr(0, end);
  if (opens) thinking.remove_prefix(kOpenThinking.size());
  rest = end == std::string_view::npos ? std::string_view() : turn.substr(end + kCloseThinking.size());
  return std::string(trim(thinking));
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

ParsedTurn ToolCallFormat::parse(std::string_view turn, bool begins_thinking) const {
  ParsedTurn parsed;
  std::string_view rest = turn;
  parsed.thinking = take_thinking(rest, begins_thinking);
  if (open.empty())
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
