#include "nodes/sources/conversation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "nodes/columns/column_json.h"
#include "text/chat_template.h"
#include "text/token_offsets.h"

namespace sluice::nodes {
namespace {

// What the assistant says in `messages`, from its range number `first` on.
LearnedConversation learned_from(const ModelText& model, const Json& messages, const Json& variables, size_t first) {
  text::MaskedChat chat = model.chat_template().render_with_mask(messages, {.variables = variables});
  std::vector<text::ByteRange> ranges;
  for (size_t i = first; i < chat.assistant.size(); ++i) ranges.push_back({chat.assistant[i].first, chat.assistant[i].second});
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

}  // namespace

std::string chat_prompt(const ModelText& model, const Json& messages, const Json& variables) {
  if (messages.back().value("role", "") == "assistant")
    throw UserError("the last message is the assistant's, but a prompt ends before it",
                    "leave it out of the messages; its text can be the label");
  return model.chat_template().render(messages, {.add_generation_prompt = true, .variables = variables});
}

LearnedConversation learned_conversation(const ModelText& model, const Json& messages, const Json& variables) {
  return learned_from(model, messages, variables, 0);
}

LearnedConversation learned_completion(const ModelText& model, const Json& prompt, const Json& completion,
                                       const Json& variables) {
  const bool spoke_before =
      std::ranges::any_of(prompt, [](const Json& message) { return message.value("role", "") == "assistant"; });
  const size_t given =
      spoke_before ? model.chat_template().render_with_mask(prompt, {.variables = variables}).assistant.size() : 0;
  Json messages = prompt;
  for (const Json& message : completion) messages.push_back(message);
  return learned_from(model, messages, variables, given);
}

LearnedConversation learned_text(const ModelText& model, const std::string& prompt, const std::string& completion,
                                 std::optional<int64_t> end_of_sequence) {
  LearnedConversation learned{.prompt = prompt, .tokens = model.tokenizer().encode(prompt, /*add_special=*/true), .actions = {}};
  const size_t prompt_tokens = learned.tokens.size();
  const std::vector<int64_t> said = model.tokenizer().encode(completion);
  learned.tokens.insert(learned.tokens.end(), said.begin(), said.end());
  if (end_of_sequence) learned.tokens.push_back(*end_of_sequence);
  learned.actions.resize(learned.tokens.size() - prompt_tokens);
  std::iota(learned.actions.begin(), learned.actions.end(), static_cast<int64_t>(prompt_tokens));
  return learned;
}

Answered answered(Json prompt, Json completion) {
  if (prompt.is_array() == completion.is_array()) return {std::move(prompt), std::move(completion)};
  if (completion.is_array())
    throw UserError("the completion is a list of messages, but the prompt is a text",
                    "write both in one form, or chat = true: then the prompt is the user's turn");
  Json turn = Json::array();
  turn.push_back({{"role", "assistant"}, {"content", std::move(completion)}});
  return {std::move(prompt), std::move(turn)};
}

LearnedConversation learned_answer(const ModelText& model, const Answered& pair, const Json& variables,
                                   std::optional<int64_t> end_of_sequence) {
  if (pair.prompt.is_array()) return learned_completion(model, pair.prompt, pair.completion, variables);
  return learned_text(model, pair.prompt.get<std::string>(), pair.completion.get<std::string>(), end_of_sequence);
}

void check_conversation(const ModelText& model, const Json& messages, const Json& variables) {
  model.chat_template().render_with_mask(messages, {.variables = variables});
}

Json* last_user_message(Json& messages) {
  if (!messages.is_array()) return nullptr;
  for (size_t i = messages.size(); i-- > 0;) {
    if (messages[i].is_object() && messages[i].value("role", "") == "user" && messages[i].contains("content"))
      return &messages[i];
  }
  return nullptr;
}

std::string content_of(const Json& message) {
  const Json& content = message["content"];
  return content.is_string() ? content.get<std::string>() : dump_json(content);
}

Json chat_variables(const std::string& text) {
  if (text.empty()) return Json::object();
  Json variables = parse_json(text, "chat_variables");
  if (!variables.is_object()) throw UserError("chat_variables must be a JSON object");
  return variables;
}

void check_chat_variables(const std::string& text, bool uses_template, engine::Findings& findings) {
  if (!uses_template && findings.changed("chat_variables"))
    findings.without_effect("chat_variables", "chat_variables has no effect without the chat template",
                            "set chat = true, or messages_field where there is one, or remove it");
  try {
    chat_variables(text);
  } catch (const UserError&) {
    findings.error("chat_variables", "chat_variables must be a JSON object", "chat_variables = '{\"enable_thinking\": false}'");
  }
}

}  // namespace sluice::nodes
