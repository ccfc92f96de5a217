#include "text/tool_calls/find_format.h"

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::text {
namespace {

// A call that no template writes by itself.
const std::string kName = "sluice_probe_tool", kKey = "sluice_probe_key", kValue = "sluice_probe_value";

Json probe_arguments() { return {{kKey, kValue}}; }

Json probe_call() {
  return {{"type", "function"}, {"id", "probe0000"}, {"function", {{"name", kName}, {"arguments", probe_arguments()}}}};
}

Json probe_tools() {
  const Json parameters = {{"type", "object"}, {"properties", {{kKey, {{"type", "string"}, {"description", "a text"}}}}}};
  const Json function = {{"name", kName}, {"description", "a tool"}, {"parameters", parameters}};
  return Json::array({Json{{"type", "function"}, {"function", function}}});
}

Json conversation(const Json& more) {
  Json messages = Json::array({Json{{"role", "user"}, {"content", "?"}}});
  for (const Json& message : more) messages.push_back(message);
  return messages;
}

// What the template writes behind the text of an assistant's message.
std::string end_of_message(const ChatTemplate& chat, const ChatOptions& options) {
  const std::string text = chat.render(conversation(Json::array({Json{{"role", "assistant"}, {"content", kValue}}})), options);
  const size_t found = text.rfind(kValue);
  return found == std::string::npos ? std::string() : text.substr(found + kValue.size());
}

// What a model would have to write to make the call. Nothing: the template shows no call where the assistant speaks.
std::optional<std::string> written_call(const ChatTemplate& chat, const Json& variables) {
  ChatOptions options{.tools = probe_tools(), .variables = variables};
  const Json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({probe_call()})}};
  const std::string text = chat.render(conversation(Json::array({message})), options);
  const std::string end = end_of_message(chat, options);
  options.add_generation_prompt = true;
  const std::string prompted = chat.render(conversation(Json::array()), options);
  std::string_view prompt = trim(prompted);
  if (prompt.ends_with("<think>")) prompt = trim(prompt.substr(0, prompt.size() - 7));
  const size_t begin = text.find(prompt);
  if (begin == std::string::npos) return std::nullopt;
  std::string_view said = std::string_view(text).substr(begin + prompt.size());
  if (said.ends_with(end)) said.remove_suffix(end.size());
  if (const size_t thought = said.find("</think>"); thought != std::string_view::npos) said.remove_prefix(thought + 8);
  return std::string(said);
}

bool is_probe_arguments(const Json& value) {
  if (value.is_object()) return value == probe_arguments();
  return value.is_string() && value.get_ref<const std::string&>().find(kValue) != std::string::npos;
}

// The keys of a call.
bool find_keys(const Json& value, ToolCallFormat& format) {
  const Json& one = value.is_array() && value.size() == 1 ? value.front() : value;
  if (!one.is_object()) return false;
  const Json& call = one.contains("function") && one["function"].is_object() ? one["function"] : one;
  bool has_name = false, has_arguments = false;
  for (const auto& [key, entry] : call.items()) {
    if (entry == kName) format.name_key = key, has_name = true;
    if (is_probe_arguments(entry)) format.arguments_key = key, has_arguments = true;
  }
  return has_name && has_arguments;
}

bool reads_probe(const ToolCallFormat& format, std::string_view said) {
  const ParsedTurn turn = format.parse(said);
  return turn.text.empty() && turn.calls.size() == 1 && turn.calls.front().fault.empty() && turn.calls.front().name == kName &&
         turn.calls.front().arguments == probe_arguments();
}

// JSON that holds the call, from `begin` on, as long as it can be.
std::optional<ToolCallFormat> format_from(std::string_view said, size_t begin, size_t value) {
  for (size_t end = said.find_last_of("}]"); end != std::string_view::npos && end > value;
       end = said.find_last_of("}]", end - 1)) {
    Json json;
    try {
      json = parse_json(said.substr(begin, end + 1 - begin), "call");
    } catch (const UserError&) {
      continue;
    }
    ToolCallFormat format{.open = std::string(trim(said.substr(0, begin))), .close = std::string(trim(said.substr(end + 1)))};
    const bool is_between_marks = !format.open.empty() || format.close.empty();
    if (is_between_marks && find_keys(json, format) && reads_probe(format, said)) return format;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat, const Json& variables) try {
  const auto written = written_call(chat, variables);
  if (!written) return std::nullopt;
  const std::string_view said = *written;
  const size_t name = said.find(kName), value = said.rfind(kValue);
  if (name == std::string_view::npos || value == std::string_view::npos) return std::nullopt;
  for (size_t begin = said.find_first_of("{["); begin < name; begin = said.find_first_of("{[", begin + 1)) {
    if (auto format = format_from(said, begin, value)) return format;
  }
  return std::nullopt;
} catch (const UserError&) {  // the template refuses calls
  return std::nullopt;
}

}  // namespace sluice::text
