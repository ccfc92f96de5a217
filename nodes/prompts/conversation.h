#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/contract.h"
#include "nodes/models/model_text.h"

namespace sluice::nodes {

/// A conversation, or a prompt with its completion, to learn from: its tokens, and which of them the assistant said.
struct LearnedConversation {
  std::string prompt;            // the text before the assistant's first words
  std::vector<int64_t> tokens;   // of the whole conversation, with the special tokens that the template writes and no others
  std::vector<int64_t> actions;  // places in `tokens`, ascending, from 1
};

/// What a chat template is told beside the messages.
struct ChatExtras {
  Json variables = Json::object();
  Json tools = nullptr;  // their JSON schemas, in a list; null: there are none
};

/// Of the parameters chat_variables (see below) and tools, a file with such a list; empty: none. Throws UserError for what is
/// none, naming the file.
ChatExtras chat_extras(const std::string& variables, const std::filesystem::path& tools);

/// The text of `messages` as the model's chat template writes it, up to where the assistant begins to speak. Throws UserError for
/// what the template refuses, and for messages that end with the assistant's.
std::string chat_prompt(const ModelText& model, const Json& messages, const ChatExtras& extras);

/// Throws UserError for what the template refuses, and where the tokenizer changes the text so that its tokens cannot be told
/// apart.
LearnedConversation learned_conversation(const ModelText& model, const Json& messages, const ChatExtras& extras);

/// Of the conversation `prompt` and then `completion`, what the assistant says in `completion`: what it said before is given.
/// Throws likewise.
LearnedConversation learned_completion(const ModelText& model, const Json& prompt, const Json& completion,
                                       const ChatExtras& extras);

/// `prompt`, tokenised as `generate` does it, and `completion`, all of whose tokens are actions; `end_of_sequence` is one more.
LearnedConversation learned_text(const ModelText& model, const std::string& prompt, const std::string& completion,
                                 std::optional<int64_t> end_of_sequence);

/// A prompt and what follows it: two texts, or two lists of messages. A completion that is a text after a conversation is what
/// the assistant says. Throws UserError where only the completion is a conversation.
struct Answered {
  Json prompt;
  Json completion;
};
Answered answered(Json prompt, Json completion);

/// learned_text() or learned_completion(), as `pair` is.
LearnedConversation learned_answer(const ModelText& model, const Answered& pair, const ChatExtras& extras,
                                   std::optional<int64_t> end_of_sequence);

/// What the template refuses in a conversation, as the functions above do, without the tokenizer.
void check_conversation(const ModelText& model, const Json& messages, const ChatExtras& extras);

/// A conversation of one message; and two of them, one behind the other.
Json one_turn(const std::string& role, Json content);
Json joined(Json messages, const Json& more);

/// The last message of the user; null: there is none, or `messages` is no conversation.
Json* last_user_message(Json& messages);

/// What a message says: its content, as JSON where that is no text.
std::string content_of(const Json& message);

/// The object that the parameter `chat_variables` spells: "" is none. Throws UserError when it is no JSON object.
Json chat_variables(const std::string& text);

/// Reports chat_variables that are no JSON object, and that these or tools have no effect because no chat template is used.
void check_chat_variables(const std::string& text, bool uses_template, engine::Findings& findings);

}  // namespace sluice::nodes
