#include "nodes/sources/prompt_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

using data::FieldKind;
using data::JsonlField;

std::vector<JsonlField> fields_of(const PromptFormat& format, const std::optional<PromptTemplate>& filled, PromptKind kind) {
  if (format.reads_messages()) return {{format.messages_field, "messages_field", FieldKind::kMessages}};
  std::vector<JsonlField> fields;
  for (const std::string& name : filled ? filled->fields() : format.prompt_fields)
    fields.push_back({.name = name, .param = filled ? "prompt_template" : "prompt_fields", .nullable = !filled});
  if (!fields.empty()) return fields;
  if (format.prompt_field.empty()) return {};
  return {{.name = format.prompt_field,
           .param = "prompt_field",
           .kind = kind.kind,
           .required = kind.required,
           .list_param = kind.kind == FieldKind::kText ? "messages_field" : ""}};
}

bool begins_with_system(const Json& messages) {
  const std::string role = messages.empty() ? "" : messages.front().value("role", "");
  return role == "system" || role == "developer";
}

// Names of the template that are not in prompt_fields, and the other way round.
void compare(const std::vector<std::string>& in_template, const std::vector<std::string>& listed, engine::Findings& findings) {
  for (const std::string& name : in_template) {
    if (std::ranges::find(listed, name) != listed.end()) continue;
    const std::string near = did_you_mean(name, listed);
    findings.error("prompt_template", "prompt_template names {" + name + "}, which prompt_fields does not have",
                   near.empty() ? "name it in prompt_fields, or leave prompt_fields out" : "did you mean {" + near + "}?");
  }
  for (const std::string& name : listed) {
    if (std::ranges::find(in_template, name) != in_template.end()) continue;
    findings.error("prompt_fields", "prompt_fields has " + sluice::quoted(name) + ", which prompt_template does not name",
                   "write {" + name + "} into it, or remove the field");
  }
}

void check_template(const PromptFormat& format, engine::Findings& findings) {
  try {
    const PromptTemplate parsed(format.prompt_template);
    if (parsed.fields().empty())
      findings.error("prompt_template", "prompt_template names no field: all prompts would be alike", "write one as {question}");
    else if (!format.prompt_fields.empty())
      compare(parsed.fields(), format.prompt_fields, findings);
  } catch (const UserError& error) {
    findings.error("prompt_template", error);
  }
}

void refuse_beside(const char* other, std::initializer_list<const char*> keys, engine::Findings& findings) {
  for (const char* key : keys) {
    if (!findings.changed(key)) continue;
    findings.without_effect(key, std::string(key) + " has no effect beside " + other, "remove one of the two");
  }
}

}  // namespace

PromptReader::PromptReader(PromptFormat format, PromptKind kind) : format_(std::move(format)) {
  if (!format_.prompt_template.empty() && !format_.reads_messages()) template_.emplace(format_.prompt_template);
  fields_ = fields_of(format_, template_, kind);
  prompt_fields_ = fields_.size();
  if (!format_.system_field.empty()) fields_.push_back({.name = format_.system_field, .param = "system_field", .nullable = true});
}

Json PromptReader::read(std::span<const Json> values) const {
  if (prompt_fields_ == 0) return {};
  const Json& first = values.front();
  if (first.is_array()) return with_system(first, values);
  const bool is_missing = prompt_fields_ == 1 && first.is_null() && !fields_.front().required;
  if (is_missing) return {};
  std::string text = format_.prefix + text_of(values.first(prompt_fields_)) + format_.suffix;
  if (!format_.chats()) return text;
  return with_system(one_turn("user", std::move(text)), values);
}

Json PromptReader::with_system(Json messages, std::span<const Json> values) const {
  const std::string system = format_.system_field.empty() ? format_.system : data::text_of(values[prompt_fields_]);
  if (system.empty() || begins_with_system(messages)) return messages;
  messages.insert(messages.begin(), Json{{"role", "system"}, {"content", system}});
  return messages;
}

std::string PromptReader::text_of(std::span<const Json> values) const {
  std::vector<std::string> texts;
  std::ranges::transform(values, std::back_inserter(texts), [](const Json& value) { return data::text_of(value); });
  if (template_) return template_->fill(texts);
  if (texts.size() > 1) std::erase_if(texts, [](const std::string& text) { return text.empty(); });
  return join(texts, "\n\n");
}

int64_t most_prompt_bytes(const PromptFormat& format, int64_t row_bytes) {
  const auto places = std::max<int64_t>(1, std::ranges::count(format.prompt_template, '{'));  // one field may be in all of them
  const size_t joints = 2 * format.prompt_fields.size();
  const size_t written = format.prefix.size() + format.suffix.size() + format.prompt_template.size() + joints;
  return static_cast<int64_t>(written) + places * row_bytes;
}

int64_t most_messages_bytes(const PromptFormat& format, int64_t row_bytes) {
  constexpr int64_t kFrame = 128;  // keys and roles of a user's turn and a system message
  constexpr int64_t kEscape = 6;   // \u0001
  constexpr int64_t kRenamed = 2;  // {"from": "gpt", "value": ""} with role and content
  const auto system = static_cast<int64_t>(format.system.size());
  return kFrame + kEscape * (system + most_prompt_bytes(format, 0)) + kRenamed * most_prompt_bytes(format, row_bytes) +
         kRenamed * row_bytes;
}

void check_prompt(const PromptFormat& format, engine::Findings& findings) {
  if (format.reads_messages()) {
    refuse_beside("messages_field", {"prompt_field", "prompt_fields", "prompt_template", "chat"}, findings);
  } else if (!format.prompt_template.empty()) {
    refuse_beside("prompt_template", {"prompt_field"}, findings);
    check_template(format, findings);
  } else if (!format.prompt_fields.empty()) {
    refuse_beside("prompt_fields", {"prompt_field"}, findings);
  }
  const bool names_empty_field = std::ranges::find(format.prompt_fields, "") != format.prompt_fields.end();
  if (names_empty_field) findings.error("prompt_fields", "prompt_fields names an empty field", "remove it");
  if (!format.system.empty() && !format.system_field.empty())
    findings.error("system_field", "there is one system message, but system and system_field name two", "remove one of the two");
  if (format.uses_template()) return;
  for (const char* key : {"system", "system_field"}) {
    if (findings.changed(key))
      findings.without_effect(key, std::string(key) + " has no effect where prompts are sent as they are",
                              "chat = true, or remove it");
  }
}

}  // namespace sluice::nodes
