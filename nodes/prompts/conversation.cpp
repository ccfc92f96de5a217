#include "nodes/prompts/conversation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "nodes/columns/column_json.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/token_offsets.h"

namespace sluice::nodes {
namespace {

text::ChatOptions options_of(const ChatExtras& extras, bool add_generation_prompt = false) {
  return {.add_generation_prompt = add_generation_prompt, .tools = extras.tools, .variables = extras.variables};
}

// As templates look for it: of the tool, or of its function.
bool has_name(const Json& tool) {
  const Json& named = tool.contains("function") && tool["function"].is_object() ? tool["function"] : tool;
  return named.contains("name") && named["name"].is_string() && !named["name"].get_ref<const std::string&>().empty();
}

Json read_tools(const std::filesystem::path& file) {
  const char* help = "rlhf-run tools PIPELINE -o FILE writes what the servers of an environment have";
  if (!is_there(file)) throw UserError("there is no file " + file.string() + " of tools", help);
  Json tools = read_json(file);
  const bool is_list = tools.is_array() && std::ranges::all_of(tools, [](const Json& tool) { return tool.is_object(); });
  if (!is_list) throw UserError(file.string() + " is no list of tools, each a JSON object", help);
  for (const Json& tool : tools) {
    if (!has_name(tool)) throw UserError(file.string() + " has a tool without a name: " + tool.dump().substr(0, 200), help);
  }
  return tools;
}

// A template may write a placeholder for them, but the models here read text alone.
constexpr std::array<std::string_view, 8> kNoText{"image",     "image_url", "input_image", "video",
                                                  "video_url", "audio",     "audio_url",   "input_audio"};

void refuse_parts_without_text(const Json& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto content = messages[i].find("content");
    if (content == messages[i].end() || !content->is_array()) continue;
    for (const Json& part : *content) {
      if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) continue;
      const auto& type = part["type"].get_ref<const std::string&>();
      if (std::ranges::find(kNoText, type) == kNoText.end()) continue;
      throw UserError(
          "message " + std::to_string(i + 1) + " has a part of type \"" + type + "\", and models here read text alone",
          "remove such rows");
    }
  }
}

bool has_parts(const Json& messages) {
  return std::ranges::any_of(messages, [](const Json& message) {
    const auto content = message.find("content");
    return content != message.end() && content->is_array();
  });
}

// Whether a template that takes texts alone has written a list of parts as Python prints it, and not the messages themselves.
bool prints_parts(const std::string& written, const Json& messages) {
  const auto is_printed = [&](const char* list) {
    return written.find(list) != std::string::npos && messages.dump().find(list) == std::string::npos;
  };
  return is_printed("[{'type': 'text'") || is_printed("[{'text': ");
}

const std::string& written_by(const std::string& chat) { return chat; }
const std::string& written_by(const text::MaskedChat& chat) { return chat.text; }

// render(), which a template of the model does. One that takes texts alone cannot do with parts what is meant.
template <class Render>
auto rendered(const Json& messages, const Render& render) {
  const char* const help = "write content as a text: the chat template takes no list of parts";
  refuse_parts_without_text(messages);
  if (!has_parts(messages)) return render();
  try {
    auto chat = render();
    if (!prints_parts(written_by(chat), messages)) return chat;
  } catch (const UserError& error) {
    throw UserError(error.message(), help);
  }
  throw UserError("the chat template writes the parts of a message with their brackets, not their text", help);
}

text::MaskedChat rendered_with_mask(const ModelText& model, const Json& messages, const ChatExtras& extras) {
  return rendered(messages, [&] { return model.chat_template().render_with_mask(messages, options_of(extras)); });
}

// What the assistant says in `messages`, from its part number `first` on.
LearnedConversation learned_from(const ModelText& model, const Json& messages, const ChatExtras& extras, size_t first) {
  const text::MaskedChat chat = rendered_with_mask(model, messages, extras);
  std::vector<text::ByteRange> ranges;
  for (size_t i = first; i < chat.parts.size(); ++i) {
    const auto& [begin, end] = chat.parts[i];
    if (begin < end) ranges.push_back({begin, end});
  }
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

ChatExtras chat_extras(const std::string& variables, const std::filesystem::path& tools) {
  return {.variables = chat_variables(variables), .tools = tools.empty() ? Json() : read_tools(tools)};
}

std::string chat_prompt(const ModelText& model, const Json& messages, const ChatExtras& extras) {
  if (messages.back().value("role", "") == "assistant")
    throw UserError("the last message is the assistant's, but a prompt ends before it",
                    "leave it out of the messages; its text can be the label");
  const text::ChatOptions options = options_of(extras, /*add_generation_prompt=*/true);
  return rendered(messages, [&] { return model.chat_template().render(messages, options); });
}

LearnedConversation learned_conversation(const ModelText& model, const Json& messages, const ChatExtras& extras) {
  return learned_from(model, messages, extras, 0);
}

LearnedConversation learned_completion(const ModelText& model, const Json& prompt, const Json& completion,
                                       const ChatExtras& extras) {
  const bool spoke_before =
      std::ranges::any_of(prompt, [](const Json& message) { return message.value("role", "") == "assistant"; });
  const size_t given = spoke_before ? rendered_with_mask(model, prompt, extras).parts.size() : 0;
  return learned_from(model, joined(prompt, completion), extras, given);
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
  return {std::move(prompt), one_turn("assistant", std::move(completion))};
}

LearnedConversation learned_answer(const ModelText& model, const Answered& pair, const ChatExtras& extras,
                                   std::optional<int64_t> end_of_sequence) {
  if (pair.prompt.is_array()) return learned_completion(model, pair.prompt, pair.completion, extras);
  return learned_text(model, pair.prompt.get<std::string>(), pair.completion.get<std::string>(), end_of_sequence);
}

void check_conversation(const ModelText& model, const Json& messages, const ChatExtras& extras) {
  rendered_with_mask(model, messages, extras);
}

Json one_turn(const std::string& role, Json content) {
  Json messages = Json::array();
  messages.push_back({{"role", role}, {"content", std::move(content)}});
  return messages;
}

Json joined(Json messages, const Json& more) {
  for (const Json& message : more) messages.push_back(message);
  return messages;
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
  if (!uses_template && findings.changed("tools"))
    findings.without_effect("tools", "tools has no effect without the chat template, which shows them",
                            "set chat = true, or messages_field where there is one, or remove it");
  try {
    chat_variables(text);
  } catch (const UserError&) {
    findings.error("chat_variables", "chat_variables must be a JSON object", "chat_variables = '{\"enable_thinking\": false}'");
  }
}

}  // namespace sluice::nodes
