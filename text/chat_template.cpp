#include "text/chat_template.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "text/chat_messages.h"

namespace sluice::text {
namespace {

// Disjoint and ascending; blocks may be nested.
std::vector<std::pair<size_t, size_t>> merged(std::vector<std::pair<size_t, size_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<size_t, size_t>> result;
  for (const auto& [begin, end] : ranges) {
    if (begin == end) continue;
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else {
      result.emplace_back(begin, end);
    }
  }
  return result;
}

bool is_assistant(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && role->is_string() && role->get_ref<const std::string&>() == "assistant";
}

Json first_messages(const Json& messages, size_t count) {
  return Json(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, const std::string& name, Json special_tokens)
    : name_(name), special_tokens_(std::move(special_tokens)) {
  templates_.emplace("default", jinja::Template(std::move(source), name));
}

const jinja::Template& ChatTemplate::chosen(const ChatOptions& options) const {
  if (templates_.size() == 1 && templates_.begin()->first == "default") return templates_.begin()->second;
  auto found = options.tools.is_null() ? templates_.end() : templates_.find("tool_use");
  if (found == templates_.end()) found = templates_.find("default");
  if (found != templates_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, unused] : templates_) names.push_back(name);
  throw UserError(name_ + " has several chat templates (" + join(names, ", ") + "), but none of them is named \"default\"",
                  "name one of them \"default\"");
}

jinja::Rendered ChatTemplate::render_plain(const Json& messages, const ChatOptions& options) const {
  Json variables = special_tokens_;
  for (const auto& [name, value] : options.variables.items()) variables[name] = value;
  variables["messages"] = messages;
  variables["tools"] = options.tools;
  variables["documents"] = options.documents;
  variables["add_generation_prompt"] = options.add_generation_prompt;
  return chosen(options).render(variables, options.now);
}

std::string ChatTemplate::render(const Json& messages, const ChatOptions& options) const {
  check_chat(messages, options.tools, options.documents, options.variables, name_);
  Json chat = prepared_messages(messages);
  if (options.continue_final_message.empty()) return render_plain(chat, options).text;
  if (options.add_generation_prompt)
    throw UserError(name_ + ": a final message that is continued and a generation prompt exclude each other");
  const std::string final_text = mark_end_of_final_message(chat, options.continue_final_message, chosen(options).source(), name_);
  return cut_at_mark(render_plain(chat, options).text, final_text, name_);
}

MaskedChat ChatTemplate::render_with_mask(const Json& messages, const ChatOptions& options) const {
  if (!options.continue_final_message.empty())
    throw UserError(name_ + ": a mask and a final message that is continued exclude each other");
  check_chat(messages, options.tools, options.documents, options.variables, name_);
  const Json chat = prepared_messages(messages);
  if (!chosen(options).has_generation()) return mask_by_prefixes(chat, options);
  jinja::Rendered rendered = render_plain(chat, options);
  return {std::move(rendered.text), merged(std::move(rendered.generations))};
}

MaskedChat ChatTemplate::mask_by_prefixes(const Json& messages, const ChatOptions& options) const {
  MaskedChat chat{render_plain(messages, options).text, {}};
  ChatOptions prompt_options = options, turn_options = options;
  prompt_options.add_generation_prompt = true;
  turn_options.add_generation_prompt = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_assistant(messages[i])) continue;
    const std::string prompt = render_plain(first_messages(messages, i), prompt_options).text;
    const std::string turn = render_plain(first_messages(messages, i + 1), turn_options).text;
    if (!turn.starts_with(prompt) || !chat.text.starts_with(turn)) {
      throw UserError(name_ + ": what the assistant says in message " + std::to_string(i) +
                          " cannot be told from the text around it: the template writes it differently " +
                          (turn.starts_with(prompt) ? "once other messages follow" : "than its generation prompt begins it"),
                      "mark the assistant's part in the template with {% generation %} ... {% endgeneration %}");
    }
    chat.assistant.emplace_back(prompt.size(), turn.size());
  }
  chat.assistant = merged(std::move(chat.assistant));
  return chat;
}

}  // namespace sluice::text
