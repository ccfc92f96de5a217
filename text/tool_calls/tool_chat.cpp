#include "text/tool_calls/tool_chat.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_marks.h"
#include "text/tool_calls/find_format.h"

namespace sluice::text {
namespace {

const Json kUser = {{"role", "user"}, {"content", "?"}};
const std::string kArgument = "argument";

// A text that stands nowhere in the results.
std::string mark_beside(std::span<const ToolResult> results) {
  std::string mark = "END_OF_ASSISTANT";
  const auto has_mark = [&](const ToolResult& result) {
    return result.text.find(mark) != std::string::npos || result.call.name.find(mark) != std::string::npos ||
           result.call.id.find(mark) != std::string::npos;
  };
  while (std::ranges::any_of(results, has_mark)) mark += "_";
  return mark;
}

std::string name_of(const ToolCall& call) { return call.name.empty() ? "unknown" : call.name; }

// Some templates want nine letters and digits.
std::string id_of(const ToolCall& call, size_t index, bool holds_name) {
  if (!call.id.empty()) return call.id;
  if (holds_name) return "functions." + name_of(call) + ":" + std::to_string(index);
  const std::string number = std::to_string(index);
  return "call" + std::string(5 - std::min<size_t>(5, number.size()), '0') + number;
}

std::string behind(const std::string& text, const std::string& mark) {
  const size_t found = text.rfind(mark);
  return found == std::string::npos ? std::string() : text.substr(found + mark.size());
}

ToolResult example(const std::string& text) {
  return {.call = {.id = {}, .name = "tool", .arguments = Json::object(), .fault = {}}, .text = text};
}

}  // namespace

// What stands after what the assistant said, where the message is the last, and where results follow it.
struct ToolChat::Tails {
  std::string alone;
  std::string followed;
};

ToolChat::ToolChat(const ChatTemplate& chat, ToolCallFormat format, Json tools, Json variables)
    : chat_(chat),
      format_(std::move(format)),
      tools_(std::move(tools)),
      variables_(std::move(variables)),
      written_(find_tool_call_format(chat, variables_)) {
  format_.thinking = find_thinking_marks(chat, variables_);
  const std::string mark = mark_beside({});
  message_end_ = behind(render(Json::array({kUser, Json{{"role", "assistant"}, {"content", mark}}}), false), mark);
  for (const char* role : {"tool", "user"}) {
    role_ = role;
    if (shows_results()) break;
    role_.clear();
  }
  if (role_.empty())
    throw UserError("the chat template shows the model no results of tools, neither as \"tool\" nor as \"user\"",
                    "a chat template with tools, such as Qwen's");
  begins_thinking_ = begins_inside(render(Json::array({kUser}), true));
  const ToolResult result = example("result");
  goes_on_thinking_ = begins_inside(after({&result, 1}, {}));
}

ParsedTurn ToolChat::parse(std::string_view turn, int64_t index, std::string_view end) const {
  const bool begins_inside = index == 0 ? begins_thinking_ : goes_on_thinking_;
  const bool closes_call = !end.empty() && format_.close.ends_with(end);
  std::string text(turn);
  if (closes_call) text += end;
  return format_.parse(text, begins_inside, tools_);
}

bool ToolChat::holds_name() const { return written_ && written_->by_name && written_->by_name->name_is_id; }

bool ToolChat::begins_inside(std::string_view prompt) const { return trim(prompt).ends_with(format_.thinking.open); }

std::string ToolChat::after(std::span<const ToolResult> results, std::string_view end, int64_t index) const {
  SLUICE_CHECK(!results.empty(), "a turn that called no tool");
  Tails found;
  try {
    found = tails(results, results, index);
  } catch (const UserError&) {  // some templates have one call in a message at most
    if (results.size() == 1) throw;
    found = tails(results.last(1), results, index);
  }
  const std::string& text = found.followed;
  const auto ends = std::ranges::mismatch(found.alone, text);
  std::string_view common(text.begin(), ends.in2);  // the end of the message
  if (common.size() < found.alone.size()) common = call_marks::without_open_bracket(common);
  if (!end.empty()) {
    const size_t place = common.rfind(end);
    if (place != std::string::npos) return text.substr(place + end.size());
  } else if (const size_t said = end_of_calls(common, results.back()); said != std::string::npos) {
    return text.substr(said);
  }
  if (!common.ends_with(message_end_)) return text.substr(common.size());
  // Another end of sequence takes the place of the template's, but for the blanks after it.
  const size_t kept = end.empty() ? message_end_.size() : message_end_.size() - (message_end_.find_last_not_of(" \r\n\t") + 1);
  return text.substr(common.size() - kept);
}

// Where the calls end, after the last one's argument; npos: they have no mark at their end.
size_t ToolChat::end_of_calls(std::string_view tail, const ToolResult& last) const {
  if (!written_ || written_->close.empty()) return std::string::npos;
  const std::string name = name_of(last.call);
  return call_marks::find_mark(written_->close, tail, 0, {.name = name, .key = kArgument}).end;
}

ToolChat::Tails ToolChat::tails(std::span<const ToolResult> called, std::span<const ToolResult> results, int64_t index) const {
  const std::string mark = mark_beside(results);
  Json messages = Json::array({kUser});
  constexpr int64_t kMostEarlier = 64;
  const ToolResult earlier = example("result");
  for (int64_t i = 0; i < std::min(index, kMostEarlier); ++i) {
    messages.push_back(said({&earlier, 1}, "said"));
    append({&earlier, 1}, messages);
  }
  messages.push_back(said(called, mark));
  Tails tails{.alone = behind(render(messages, false), mark), .followed = {}};
  append(results, messages);
  tails.followed = behind(render(messages, true), mark);
  return tails;
}

// A message that ends with the mark, as far as its text is the model's.
Json ToolChat::said(std::span<const ToolResult> called, const std::string& mark) const {
  if (!written_) return {{"role", "assistant"}, {"content", mark}};
  Json calls = Json::array();
  for (size_t i = 0; i < called.size(); ++i) {
    const ToolCall& call = called[i].call;
    const Json object = {{kArgument, mark}};
    const Json arguments = written_->wants_text ? Json(object.dump()) : object;
    const Json function = {{"name", name_of(call)}, {"arguments", arguments}};
    calls.push_back({{"type", "function"}, {"id", id_of(call, i, holds_name())}, {"function", function}});
  }
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
}

void ToolChat::append(std::span<const ToolResult> results, Json& messages) const {
  if (role_ == "user") {  // one message, since the roles may have to alternate
    std::vector<std::string> texts;
    for (const ToolResult& result : results) texts.push_back(result.text);
    return messages.push_back({{"role", "user"}, {"content", join(texts, "\n")}});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const ToolCall& call = results[i].call;
    messages.push_back(
        {{"role", role_}, {"name", name_of(call)}, {"tool_call_id", id_of(call, i, holds_name())}, {"content", results[i].text}});
  }
}

std::string ToolChat::render(const Json& messages, bool add_generation_prompt) const {
  return chat_.render(messages,
                      {.add_generation_prompt = add_generation_prompt, .tools = tools_, .variables = variables_, .now = {}});
}

bool ToolChat::shows_results() const try {
  const ToolResult result = example("SHOWN_RESULT");
  return tails({&result, 1}, {&result, 1}, 0).followed.find(result.text) != std::string::npos;
} catch (const UserError&) {
  return false;
}

}  // namespace sluice::text
