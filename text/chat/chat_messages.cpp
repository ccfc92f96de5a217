#include "text/chat/chat_messages.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/jinja/unicode.h"

namespace sluice::text {
namespace {

constexpr std::array<const char*, 3> kReasoning = {"reasoning_content", "thinking", "reasoning"};

// A template may strip the blank after it; then it was stripped from the message as well.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kStrippedMark = kMark.substr(0, kMark.size() - 1);

void check_objects(const Json& values, const std::string& what, const std::string& name) {
  if (!values.is_array()) throw UserError(name + ": " + what + " must be an array of objects, not " + values.type_name());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_object())
      throw UserError(name + ": " + what + "[" + std::to_string(i) + "] must be an object, not " + values[i].type_name());
  }
}

Json without_nulls(const Json& message) {
  Json kept = Json::object();
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null()) kept[key] = value;
  }
  return kept;
}

Json with_reasoning(const Json& message) {
  const auto* const found =
      std::find_if(kReasoning.begin(), kReasoning.end(), [&](const char* key) { return message.contains(key); });
  if (found == kReasoning.end()) return message;
  Json aliased = {{"thinking", message.at(*found)}};
  for (const auto& [key, value] : message.items()) aliased[key] = value;
  aliased["reasoning_content"] = message.at(*found);
  return aliased;
}

std::string stripped(std::string_view text) { return std::string(jinja::unicode::strip(text, true, true)); }

// The last text among the parts of a content list.
Json* last_text(Json& parts) {
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].is_object() && parts[i].contains("text") && parts[i]["text"].is_string()) return &parts[i]["text"];
  }
  return nullptr;
}

}  // namespace

void check_chat(const Json& messages, const Json& tools, const Json& documents, const Json& variables, const std::string& name) {
  check_objects(messages, "messages", name);
  if (messages.empty()) throw UserError(name + ": the conversation has no messages");
  if (!tools.is_null()) check_objects(tools, "tools", name);
  if (!documents.is_null()) check_objects(documents, "documents", name);
  if (!variables.is_object())
    throw UserError(name + ": the variables of a template must be an object, not " + std::string(variables.type_name()));
}

Json prepared_messages(const Json& messages) {
  Json prepared = Json::array();
  for (const Json& message : messages) prepared.push_back(with_reasoning(without_nulls(message)));
  return prepared;
}

std::string mark_end_of_final_message(Json& messages, const std::string& key, const std::string& source,
                                      const std::string& name) {
  Json& message = messages.back();
  if (!message.contains(key)) throw UserError(name + ": the final message has no " + sluice::quoted(key) + " to continue");
  const Json final_value = message[key];
  std::vector<std::string> keys{key};
  if (std::find(kReasoning.begin(), kReasoning.end(), key) != kReasoning.end()) {
    keys.clear();
    for (const char* alias : kReasoning) {
      if (message.contains(alias) && message[alias] == final_value) keys.emplace_back(alias);
    }
  }
  const bool mentioned =
      std::any_of(keys.begin(), keys.end(), [&](const std::string& field) { return source.find(field) != std::string::npos; });
  if (!mentioned)
    throw UserError(name + ": the template does not mention " + sluice::quoted(key) +
                    ", which the final message shall be continued with");
  if (final_value.is_array()) {
    Json* text = last_text(message[key]);
    if (!text) throw UserError(name + ": the final message has no text to continue");
    const std::string before = text->get<std::string>();
    *text = before + std::string(kMark);
    return before;
  }
  if (!final_value.is_string())
    throw UserError(name + ": " + sluice::quoted(key) + " of the final message must be a text to be continued, not " +
                    final_value.type_name());
  for (const std::string& field : keys) message[field] = final_value.get<std::string>() + std::string(kMark);
  return final_value.get<std::string>();
}

std::string cut_at_mark(std::string rendered, const std::string& final_text, const std::string& name) {
  const size_t mark = rendered.rfind(kStrippedMark);
  if (mark == std::string::npos || rendered.find(stripped(final_text)) == std::string::npos) {
    throw UserError(name + ": the template does not print the final message as it is, so that it cannot be continued");
  }
  const bool keeps_blanks = std::string_view(rendered).substr(mark).starts_with(kMark);
  rendered.resize(mark);
  return keeps_blanks ? rendered : std::string(jinja::unicode::strip(rendered, false, true));
}

}  // namespace sluice::text
