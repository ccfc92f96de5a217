#include "base/error.h"
#include "tests/fuzz/target.h"
#include "text/tool_calls/find_format.h"
#include "text/tool_calls/tool_chat.h"

namespace {

// Hermes' marks, with a template that writes what follows.
const std::string kTemplate =
    "{% for m in messages %}<{{ m.role }}>{% for c in m.tool_calls %}<tool_call>{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": "
    "{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

// Calls by name: arguments as JSON, as plain text, as Python's, and with marks of their own around strings.
const std::vector<sluice::text::ToolCallFormat>& by_name() {
  using sluice::text::CallByName;
  using sluice::text::CallTexts;
  static const std::vector<sluice::text::ToolCallFormat> formats = {
      {.open = "[TOOL_CALLS]",
       .close = {},
       .by_name = CallByName{.arguments_open = "[CALL_ID]\x01[ARGS]", .between = "[TOOL_CALLS]"}},
      {.open = "<tool_call>\n<function=",
       .close = "\n</parameter>\n</function>\n</tool_call>",
       .by_name = CallByName{.arguments_open = ">\n<parameter=",
                             .between = "\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=",
                             .has_keys = true,
                             .value_open = ">\n",
                             .next = "\n</parameter>\n<parameter=",
                             .none = ">\n</function>\n</tool_call>",
                             .none_between = ">\n</function>\n</tool_call>\n<tool_call>\n<function="}},
      {.open = "[",
       .close = ")]",
       .by_name = CallByName{.arguments_open = "(",
                             .between = "), ",
                             .has_keys = true,
                             .texts = CallTexts::kLiteral,
                             .value_open = "=",
                             .next = ", ",
                             .none = "()]",
                             .none_between = "(), "}},
      {.open = "<call:",
       .close = "}</call>",
       .by_name = CallByName{.arguments_open = "{",
                             .has_keys = true,
                             .texts = CallTexts::kMarked,
                             .value_open = ":",
                             .text_open = ":<|\"|>",
                             .text_close = "<|\"|>",
                             .next = ",",
                             .none = "{}</call>"}}};
  return formats;
}

const sluice::Json& tools() {
  static const sluice::Json all = sluice::parse_json(
      R"([{"name": "add", "parameters": {"properties": {"a": {"type": "integer"}, "b": {"$ref": "#/x"}}, "x": {"anyOf": [{}]}}}])",
      "tools");
  return all;
}

}  // namespace

// The turn of a model in each format, and after a zero byte what a tool says to its calls.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::text;
  static const ChatTemplate chat(kTemplate, "chat_template");
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const std::string_view turn = input.substr(0, input.find('\0'));
  const std::string said(input.substr(std::min(turn.size() + 1, input.size())));
  static const ToolChat hermes(chat, *find_tool_call_format(chat), nullptr);
  std::vector<ToolCallFormat> formats = by_name();
  for (const std::string& name : tool_call_formats()) formats.push_back(tool_call_format(name));
  for (const ToolCallFormat& format : formats) {
    for (const bool begins_thinking : {false, true}) format.parse(turn, begins_thinking, tools());
    std::vector<ToolResult> results;
    for (ToolCall& call : format.parse(turn, false, tools()).calls) {
      (void)call.arguments.dump();  // as it goes to a tool
      results.push_back({std::move(call), said});
    }
    try {
      if (!results.empty()) hermes.after(results, "<end>");
    } catch (const sluice::UserError&) {  // text that is no UTF-8
    }
  }
  return 0;
}
