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

}  // namespace

// The turn of a model in each format, and behind a zero byte what a tool says to its calls.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::text;
  static const ChatTemplate chat(kTemplate, "chat_template");
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const std::string_view turn = input.substr(0, input.find('\0'));
  const std::string said(input.substr(std::min(turn.size() + 1, input.size())));
  for (const std::string& name : tool_call_formats()) {
    static const ToolChat hermes(chat, *find_tool_call_format(chat), nullptr);
    for (const bool begins_thinking : {false, true}) tool_call_format(name).parse(turn, begins_thinking);
    std::vector<ToolResult> results;
    for (ToolCall& call : tool_call_format(name).parse(turn).calls) results.push_back({std::move(call), said});
    try {
      if (!results.empty()) hermes.after(results, "<end>");
    } catch (const sluice::UserError&) {  // text that is no UTF-8
    }
  }
  return 0;
}
