#include <ctime>

#include "base/error.h"
#include "base/json/json.h"
#include "tests/fuzz/target.h"
#include "text/chat/chat_template.h"

// A chat template, and after a zero byte the messages: what is not there is a conversation that every template understands.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sluice::Json conversation = sluice::parse_json(
      R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "12 + 30?"},
          {"role": "assistant", "content": "<think>\nsum\n</think>\n42", "tool_calls": [{"type": "function", "function": {"name": "add",
           "arguments": {"a": 12, "b": 30.5}}}]}, {"role": "tool", "content": "42"}, {"role": "user", "content": "Ünï 🙂"}])",
      "conversation");
  static const sluice::Json tools =
      sluice::parse_json(R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])", "tools");
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const size_t end = std::min(input.find('\0'), input.size());
  try {
    const auto messages = end == input.size() ? conversation : sluice::parse_json(input.substr(end + 1), "messages");
    const sluice::text::ChatTemplate chat(std::string(input.substr(0, end)), "chat_template",
                                          {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    chat.render_with_mask(messages,
                          {.add_generation_prompt = true, .tools = tools, .now = std::tm{.tm_mday = 1, .tm_year = 100}});
  } catch (const sluice::UserError&) {
  }
  return 0;
}
