#pragma once

#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "text/jinja/template.h"

namespace sluice::text {

/// What a conversation is rendered with, besides its messages.
struct ChatOptions {
  bool add_generation_prompt = false;       // the text ends where the assistant begins to speak
  Json tools = nullptr;                     // JSON schemas, one a tool
  Json documents = nullptr;                 // objects
  Json variables = Json::object();          // what else the template knows (enable_thinking); also over the special tokens
  std::string continue_final_message = {};  // "content", or another key of the last message: the text ends with it, open-ended
  std::optional<std::tm> now = {};          // for templates that print the date; nothing: the local time of the clock
};

/// The special tokens of a model folder, by name: {"eos_token": "</s>"}. Of tokenizer_config.json and special_tokens_map.json;
/// what neither names is not there. Throws UserError naming file and key.
Json special_tokens_of(const std::filesystem::path& folder);

/// A rendered conversation and the bytes [first, second) of it that the assistant said, ascending and disjoint.
struct MaskedChat {
  std::string text;
  std::vector<std::pair<size_t, size_t>> assistant;
  // The same, one for each {% generation %} block or message, ascending: some may touch or be empty. The first messages have as
  // many as without those that follow.
  std::vector<std::pair<size_t, size_t>> parts;
};

/// The chat template of a model: gives the text of transformers' apply_chat_template, byte for byte.
///
/// As there, keys of a message whose value is null are dropped before the template sees them, reasoning is found under each of
/// reasoning_content, thinking and reasoning, and `tools`, `documents` and `add_generation_prompt` are always defined.
/// Immutable after load: const use from many threads.
class ChatTemplate {
 public:
  /// Of a model folder: chat_template.jinja with additional_chat_templates/*.jinja, else "chat_template" of tokenizer_config.json
  /// (a text, or a list of {name, template}), else that of chat_template.json. Special tokens come from tokenizer_config.json and
  /// special_tokens_map.json. Throws UserError naming file and key or line for what is missing or malformed.
  static ChatTemplate load(const std::filesystem::path& folder);

  /// Whether load(folder) would find one. Throws UserError where a file that may have it is malformed.
  static bool is_in(const std::filesystem::path& folder);

  /// The template in `file` with the special tokens of `folder`.
  static ChatTemplate load(const std::filesystem::path& folder, const std::filesystem::path& file);

  /// `special_tokens`: an object of texts, such as {"eos_token": "</s>"}.
  ChatTemplate(std::string source, const std::string& name, Json special_tokens = Json::object());

  /// `messages`: an array of objects. Throws UserError for messages that are no conversation, and for what the template refuses
  /// or cannot do, naming its file and line.
  std::string render(const Json& messages, const ChatOptions& options = {}) const;

  /// Also what the assistant said. A template that marks it with {% generation %} blocks is believed. For any other, each
  /// assistant message is what the text up to it has more than the prompt before it. Where a template writes a message
  /// differently once others follow (Qwen3 puts an empty thought before the last), it reaches from its prompt to where its
  /// content ends, and as far behind that as if it were the last. Throws UserError that names the message where neither is to be
  /// found. Not with continue_final_message.
  MaskedChat render_with_mask(const Json& messages, const ChatOptions& options = {}) const;

  const Json& special_tokens() const { return special_tokens_; }

 private:
  ChatTemplate() = default;

  const jinja::Template& chosen(const ChatOptions& options) const;
  jinja::Rendered render_plain(const Json& messages, const ChatOptions& options) const;
  MaskedChat mask_by_prefixes(const Json& messages, const ChatOptions& options) const;
  std::optional<size_t> end_by_mark(const Json& messages, size_t index, const std::string& text, const std::string& turn,
                                    const ChatOptions& options) const;
  std::optional<size_t> end_of_content(const Json& messages, size_t index, const std::string& text,
                                       const ChatOptions& options) const;

  std::string name_;                                  // of the folder or file, for messages
  std::map<std::string, jinja::Template> templates_;  // by name; a single one is "default"
  Json special_tokens_ = Json::object();
};

}  // namespace sluice::text
