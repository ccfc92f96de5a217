#include "nodes/conversation.h"

#include <utility>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/token_offsets.h"

namespace sluice::nodes {

std::string chat_prompt(const LanguageModel& model, const Json& messages, const Json& variables) {
  if (messages.back().value("role", "") == "assistant")
    throw UserError("the last message is the assistant's, but a prompt ends before it",
                    "leave it out of the messages; its text can be the label");
  return model.chat_template().render(messages, {.add_generation_prompt = true, .variables = variables});
}

LearnedConversation learned_conversation(const LanguageModel& model, const Json& messages, const Json& variables) {
  text::MaskedChat chat = model.chat_template().render_with_mask(messages, {.variables = variables});
  std::vector<text::ByteRange> ranges;
  for (const auto& [begin, end] : chat.assistant) ranges.push_back({begin, end});
  LearnedConversation learned;
  learned.tokens = model.tokenizer().encode(chat.text);
  const auto mask = text::tokens_in_ranges(model.tokenizer(), chat.text, learned.tokens, ranges);
  if (!mask)
    throw UserError("the assistant's tokens cannot be told from the others: the tokenizer changes the text where they meet",
                    "write the messages in the normal form of the tokenizer (NFC)");
  for (size_t token = 1; token < mask->size(); ++token) {
    if ((*mask)[token] != 0) learned.actions.push_back(static_cast<int64_t>(token));
  }
  learned.prompt = chat.text.substr(0, ranges.empty() ? chat.text.size() : ranges.front().begin);
  return learned;
}

Json chat_variables(const std::string& text) {
  if (text.empty()) return Json::object();
  Json variables = parse_json(text, "chat_variables");
  if (!variables.is_object()) throw UserError("chat_variables must be a JSON object");
  return variables;
}

void check_chat_variables(const std::string& text, bool reads_messages, engine::Findings& findings) {
  if (!reads_messages && findings.changed("chat_variables"))
    findings.without_effect("chat_variables", "chat_variables has no effect without messages_field",
                            "set messages_field, or remove it");
  try {
    chat_variables(text);
  } catch (const UserError&) {
    findings.error("chat_variables", "chat_variables must be a JSON object", "chat_variables = '{\"enable_thinking\": false}'");
  }
}

}  // namespace sluice::nodes
