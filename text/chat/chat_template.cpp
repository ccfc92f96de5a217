#include "text/chat/chat_template.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/chat/chat_messages.h"

namespace sluice::text {
namespace {

// Blocks may be nested.
MaskedChat masked(std::string text, std::vector<std::pair<size_t, size_t>> parts) {
  std::ranges::sort(parts);
  std::vector<std::pair<size_t, size_t>> result;
  for (const auto& [begin, end] : parts) {
    if (begin == end) continue;
    if (!result.empty() && begin <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else {
      result.emplace_back(begin, end);
    }
  }
  return {std::move(text), std::move(result), std::move(parts)};
}

bool is_assistant(const Json& message) {
  const auto role = message.find("role");
  return role != message.end() && role->is_string() && role->get_ref<const std::string&>() == "assistant";
}

Json first_messages(const Json& messages, size_t count) {
  return Json(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count));
}

constexpr std::string_view kEndMark = "\xEE\x80\x80";  // U+E000, which no text has that means something

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// What two texts begin with alike, but for the name of a token that both have only begun to write: "<|".
std::string_view common_turn_end(std::string_view a, std::string_view b) {
  const std::string_view common = a.substr(0, common_prefix(a, b));
  if (common.size() == a.size()) return common;
  const size_t open = common.find_last_of("<["), closed = common.find_last_of(">]");
  const bool is_open = open != std::string_view::npos && (closed == std::string_view::npos || closed < open);
  return is_open ? common.substr(0, open) : common;
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
  return masked(std::move(rendered.text), std::move(rendered.generations));
}

MaskedChat ChatTemplate::mask_by_prefixes(const Json& messages, const ChatOptions& options) const {
  std::string text = render_plain(messages, options).text;
  std::vector<std::pair<size_t, size_t>> parts;
  ChatOptions prompt_options = options, turn_options = options;
  prompt_options.add_generation_prompt = true;
  turn_options.add_generation_prompt = false;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_assistant(messages[i])) continue;
    const std::string prompt = render_plain(first_messages(messages, i), prompt_options).text;
    const std::string turn = render_plain(first_messages(messages, i + 1), turn_options).text;
    const bool is_prefix = turn.starts_with(prompt) && text.starts_with(turn);
    const std::optional<size_t> end = is_prefix ? turn.size() : end_by_mark(messages, i, text, turn, turn_options);
    if (!text.starts_with(prompt) || !end || *end < prompt.size()) {
      throw UserError(name_ + ": what the assistant says in message " + std::to_string(i) +
                          " cannot be told from the text around it: the template writes it differently " +
                          (turn.starts_with(prompt) ? "once other messages follow" : "than its generation prompt begins it"),
                      "mark the assistant's part in the template with {% generation %} ... {% endgeneration %}");
    }
    parts.emplace_back(prompt.size(), *end);
  }
  return masked(std::move(text), std::move(parts));
}

// A template may write the last turn otherwise than earlier ones, as with an empty thought before it. Then a turn ends as it does
// where it is the last, as far as the text goes on like that.
std::optional<size_t> ChatTemplate::end_by_mark(const Json& messages, size_t index, const std::string& text,
                                                const std::string& turn, const ChatOptions& options) const {
  const auto end = end_of_content(messages, index, text, options);
  const auto end_of_last = end_of_content(first_messages(messages, index + 1), index, turn, options);
  if (!end || !end_of_last) return std::nullopt;
  const size_t behind = common_turn_end(std::string_view(turn).substr(*end_of_last), std::string_view(text).substr(*end)).size();
  return behind == 0 ? std::nullopt : std::optional(*end + behind);
}

// Where a mark comes to stand that is put after it.
std::optional<size_t> ChatTemplate::end_of_content(const Json& messages, size_t index, const std::string& text,
                                                   const ChatOptions& options) const {
  const auto content = messages[index].find("content");
  if (content == messages[index].end() || !content->is_string()) return std::nullopt;
  const auto& said = content->get_ref<const std::string&>();
  Json marked = messages;
  marked[index]["content"] = said.substr(0, said.find_last_not_of(" \t\r\n") + 1) + std::string(kEndMark);
  const std::string with_mark = render_plain(marked, options).text;
  const size_t end = common_prefix(text, with_mark);
  return with_mark.compare(end, kEndMark.size(), kEndMark) == 0 ? std::optional(end) : std::nullopt;
}

}  // namespace sluice::text
