#include "text/tool_calls/probe.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_marks.h"

namespace sluice::text {
namespace {

const std::string kSaid = "sluice_probe_text", kReasoning = "sluice_probe_reasoning", kTool = "sluice_probe_tool",
                  kQuestion = "sluice_probe_question";

// Tools as a source has them; what they are called does not matter to any template.
Json probe_tools() {
  const Json property = {{"type", "string"}, {"description", "a text"}};
  const Json parameters = {{"type", "object"}, {"properties", {{"sluice_probe_key", property}}}, {"required", Json::array()}};
  const Json function = {{"name", kTool}, {"description", "a tool"}, {"parameters", parameters}};
  return Json::array({Json{{"type", "function"}, {"function", function}}});
}

// What both begin with, up to the end of a mark.
std::string_view common_begin(std::string_view a, std::string_view b) {
  const auto ends = std::ranges::mismatch(a, b);
  const std::string_view common = a.substr(0, static_cast<size_t>(ends.in1 - a.begin()));
  return common.size() == a.size() ? common : call_marks::without_open_bracket(common);
}

// What both end with, from the beginning of a mark on.
std::string_view common_end(std::string_view a, std::string_view b) {
  const auto ends = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const std::string_view common = a.substr(static_cast<size_t>(a.rend() - ends.first));
  if (common.size() == b.size()) return common;
  const size_t mark = common.find_first_of("<[");
  return mark == std::string_view::npos ? std::string_view() : common.substr(mark);
}

// The mark that a text ends with, and what stands after it.
std::string last_mark(std::string_view text) {
  const size_t open = text.find_last_of("<[");
  return open == std::string_view::npos ? std::string() : std::string(trim(text.substr(open)));
}

// The mark that a text begins with.
std::string first_mark(std::string_view text) {
  text = trim(text);
  const size_t close = text.find_first_of(">]");
  return close == std::string_view::npos ? std::string() : std::string(text.substr(0, close + 1));
}

std::string_view without_blanks_behind(std::string_view text) { return text.substr(0, text.find_last_not_of(" \t\r\n") + 1); }

// `text` without what `end` and it end with.
std::string_view without_common_end(std::string_view text, std::string_view end) {
  const auto ends = std::mismatch(text.rbegin(), text.rend(), end.rbegin(), end.rend());
  return text.substr(0, static_cast<size_t>(text.rend() - ends.first));
}

}  // namespace

std::string TemplateProbe::id(size_t index) { return "probe000" + std::to_string(index); }  // some templates want nine characters

std::optional<std::string> TemplateProbe::rendered(const Json& message, bool add_generation_prompt) const try {
  Json messages = Json::array({Json{{"role", "user"}, {"content", kQuestion}}});
  if (!message.is_null()) messages.push_back(message);
  return chat_.render(
      messages, {.add_generation_prompt = add_generation_prompt, .tools = probe_tools(), .variables = variables_, .now = {}});
} catch (const UserError&) {  // the template refuses it
  return std::nullopt;
}

Json TemplateProbe::called(const std::vector<Call>& calls, bool as_text) const {
  Json list = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Json function = {{"name", calls[i].name},
                           {"arguments", as_text ? Json(calls[i].arguments.dump()) : calls[i].arguments}};
    list.push_back({{"type", "function"}, {"id", id(i)}, {"function", function}});
  }
  return {{"role", "assistant"}, {"content", ""}, {"tool_calls", list}};
}

std::optional<std::string> TemplateProbe::said(const std::vector<Call>& calls, bool as_text,
                                               const ThinkingMarks& thinking) const {
  const auto text = rendered(called(calls, as_text), false), prompt = rendered(nullptr, true);
  if (!text || !prompt) return std::nullopt;
  std::string_view said = std::string_view(*text).substr(common_begin(*text, without_blanks_behind(*prompt)).size());
  if (said.find(kQuestion) != std::string_view::npos) return std::nullopt;  // no common beginning to cut off
  const auto plain = rendered({{"role", "assistant"}, {"content", kSaid}}, false);
  if (const size_t found = plain ? plain->rfind(kSaid) : std::string::npos; found != std::string::npos) {
    said = trim(said);
    said.remove_suffix(common_end(said, trim(std::string_view(*plain).substr(found + kSaid.size()))).size());
  }
  const size_t name = said.find(calls.front().name);
  if (const size_t thought = said.substr(0, name).rfind(thinking.close); thought != std::string_view::npos)
    said.remove_prefix(thought + thinking.close.size());
  return std::string(said);
}

ThinkingMarks TemplateProbe::thinking() const {
  const auto prompt = rendered(nullptr, true);
  if (!prompt) return {};
  const Json answer = {{"role", "assistant"}, {"content", kSaid}};
  const Json call = called({{.name = kTool, .arguments = Json::object()}}, false);
  const auto in_answer = thinking_of(answer, *prompt, kSaid), in_call = thinking_of(call, *prompt, kTool);
  if (!in_answer && !in_call) return {};
  ThinkingMarks marks{.open = in_answer ? in_answer->open : in_call->open, .close = {}};
  if (in_answer && in_call)  // before an answer there may be more: a channel
    marks.close = trim(common_begin(in_answer->close, in_call->close));
  if (marks.close.empty()) marks.close = in_answer ? in_answer->close : in_call->close;
  return marks;
}

// What stands around the reasoning of a message that says `what`.
std::optional<ThinkingMarks> TemplateProbe::thinking_of(Json message, const std::string& prompt, const std::string& what) const {
  const auto without = rendered(message, false);
  message["reasoning_content"] = kReasoning;
  const auto text = rendered(message, false);
  if (!text || !without) return std::nullopt;
  const std::string_view head = common_begin(*text, without_blanks_behind(prompt));
  const std::string_view said = std::string_view(*text).substr(head.size());
  const size_t begin = said.find(kReasoning), end = begin + kReasoning.size();
  const size_t told = begin == std::string_view::npos ? begin : said.find(what, end);
  if (told == std::string_view::npos) return std::nullopt;
  ThinkingMarks marks{.open = std::string(trim(said.substr(0, begin))), .close = {}};
  if (marks.open.empty()) marks.open = last_mark(head);
  const std::string_view behind = said.substr(end, told - end);
  const std::string_view plain = std::string_view(*without).substr(common_begin(*without, without_blanks_behind(prompt)).size());
  marks.close = trim(without_common_end(behind, plain.substr(0, plain.find(what))));
  if (marks.close.empty()) marks.close = first_mark(behind);  // without reasoning the marks are there all the same
  if (marks.open.empty() || marks.close.empty()) return std::nullopt;
  return marks;
}

}  // namespace sluice::text
