#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "data/jsonl_reader.h"
#include "engine/contract/contract.h"
#include "nodes/models/model_text.h"
#include "nodes/prompts/conversation.h"
#include "nodes/prompts/prompt_template.h"

namespace sluice::nodes {

/// How a row becomes a prompt: the keys that all sources of prompts, examples and pairs share.
///
///   prompt_field = "question"                    # one field
///   prompt_fields = ["instruction", "input"]     # or several: those that are not empty, with a blank line between two
///   prompt_template = "{instruction} {input}"    # or as they are written here
///   messages_field = "messages"                  # or a conversation: a list of {role, content}, or ShareGPT's {from, value}
///   chat = true                                  # the text is the user's turn, and the model's chat template writes the prompt
///   system = "Answer briefly."                   # what a conversation begins with, unless it has a system message of its own
///   system_field = "system"                      # or a field of the row; empty or null: none
struct PromptFormat {
  std::string prompt_field;
  std::vector<std::string> prompt_fields;
  std::string prompt_template;
  std::string messages_field;
  std::optional<bool> chat;  // not written: the text is sent as it is, with a warning if the model has a template
  std::string system;
  std::string system_field;
  std::string prefix;  // of a text, within the user's turn
  std::string suffix;

  bool reads_messages() const { return !messages_field.empty(); }
  bool chats() const { return chat.value_or(false); }
  bool uses_template() const { return reads_messages() || chats(); }
};

/// What the single prompt_field of a source may be.
struct PromptKind {
  data::FieldKind kind = data::FieldKind::kText;
  bool required = true;
};

/// Makes prompts of rows. Immutable: const use from many threads.
class PromptReader {
 public:
  /// The format was found right by check_prompt().
  explicit PromptReader(PromptFormat format, PromptKind kind = {});

  /// What it reads of a row.
  const std::vector<data::JsonlField>& fields() const { return fields_; }

  /// Of the values of fields(): a text, or a list of messages with the system message. Null where an optional prompt is missing.
  Json read(std::span<const Json> values) const;

  /// `messages` with the system message of a row in front, unless they have one.
  Json with_system(Json messages, std::span<const Json> values) const;

  const PromptFormat& format() const { return format_; }

 private:
  std::string text_of(std::span<const Json> values) const;

  PromptFormat format_;
  std::optional<PromptTemplate> template_;
  std::vector<data::JsonlField> fields_;  // of the prompt, then of the system message
  size_t prompt_fields_ = 1;
};

/// Bytes that no prompt exceeds which is a text, of rows of so many bytes; and of the JSON of those that are conversations.
int64_t most_prompt_bytes(const PromptFormat& format, int64_t row_bytes);
int64_t most_messages_bytes(const PromptFormat& format, int64_t row_bytes);

/// The format that the members of P say, which are called like those of PromptFormat.
template <class P>
PromptFormat prompt_format(const P& params) {
  PromptFormat format{.prompt_field = params.prompt_field,
                      .prompt_fields = params.prompt_fields,
                      .prompt_template = params.prompt_template,
                      .messages_field = {},
                      .chat = params.chat,
                      .system = params.system,
                      .system_field = params.system_field,
                      .prefix = {},
                      .suffix = {}};
  if constexpr (requires { params.messages_field; }) format.messages_field = params.messages_field;
  if constexpr (requires { params.prefix; }) format.prefix = params.prefix, format.suffix = params.suffix;
  return format;
}

/// The id after completions that are texts, where P::add_end_of_sequence asks for one.
template <class P>
std::optional<int64_t> end_of_texts(const P& params, const ModelText& model) {
  if (!params.add_end_of_sequence || prompt_format(params).uses_template()) return std::nullopt;
  return model.end_of_sequence("set add_end_of_sequence = false");
}

/// Reports keys that contradict each other or have no effect.
void check_prompt(const PromptFormat& format, engine::Findings& findings);

/// The keys, but for messages_field, whose doc says what becomes of a conversation.
template <class P>
void describe_prompt(engine::Contract<P>& c) {
  c.param("prompt_field", &P::prompt_field).doc("field of the prompt; \"a.b\" is the field b of the object a");
  c.param("prompt_fields", &P::prompt_fields)
      .doc("instead of it several fields; those that are not empty are joined with a blank line between two");
  c.param("prompt_template", &P::prompt_template)
      .doc("the prompt with fields of the row in it, as \"{instruction}\\n{input}\"; {{ and }} are braces");
  c.param("chat", &P::chat)
      .doc(
          "true: the prompt is the user's turn, which the model's chat template writes; false: it is sent as it is, and no "
          "warning says so where the model has a template");
  c.param("system", &P::system).doc("system message of conversations that have none of their own");
  c.param("system_field", &P::system_field).doc("field of that message; where it is empty or null there is none");
  c.param("chat_variables", &P::chat_variables).doc("what else the chat template is told: a JSON object");
  c.param("tools", &P::tools)
      .doc("file of the tools that the chat template shows the model: a JSON list, as rlhf-run tools writes it");
  c.check([](const P& params, engine::Findings& findings) { check_prompt(prompt_format(params), findings); });
}

}  // namespace sluice::nodes
