// Turns with tools as our code has them, for the comparison with published templates (tests/oracles/tool_templates.py).
//
// One JSON object a line: {"template", "special_tokens", "tools", "variables", "renders": [{"messages", "add_generation_prompt",
// "tools", "variables"}], "turns": [{"text", "index", "answers": ["..."], "ends": ["..."]}]}. One answer a line: {"renders":
// [{"text"} or {"error"}], "format": null or {...}, "turns": [{"thinking", "text", "calls", "after": ["..."]: for each end, for
// turn 0 and turn 1} or {"error"}]}.
#include <iostream>
#include <string>

#include "base/error.h"
#include "tests/text/chat_template_fixtures.h"
#include "text/tool_calls/find_format.h"
#include "text/tool_calls/tool_chat.h"

namespace {

using namespace sluice;

Json refused(const UserError& error) { return {{"error", error.what()}}; }

Json rendered(const text::ChatTemplate& chat, const Json& what) try {
  const text::ChatOptions options{.add_generation_prompt = what.value("add_generation_prompt", false),
                                  .tools = what.value("tools", Json()),
                                  .variables = what.value("variables", Json::object()),
                                  .now = text::golden_time()};
  return {{"text", chat.render(what.at("messages"), options)}};
} catch (const UserError& error) {
  return refused(error);
}

Json described(const text::ToolCallFormat& format) {
  Json json = {{"open", format.open},
               {"close", format.close},
               {"thinking", {format.thinking.open, format.thinking.close}},
               {"wants_text", format.wants_text}};
  if (!format.by_name) {
    json["keys"] = {format.name_key, format.arguments_key};
    return json;
  }
  const text::CallByName& call = *format.by_name;
  json["arguments_open"] = call.arguments_open;
  json["between"] = call.between;
  json["name_is_id"] = call.name_is_id;
  if (!call.has_keys) return json;
  json["texts"] = static_cast<int>(call.texts);
  json["value_open"] = call.value_open;
  json["text_marks"] = {call.text_open, call.text_close};
  json["next"] = call.next;
  json["none"] = {call.none, call.none_between};
  return json;
}

Json answered(const text::ToolChat& chat, const Json& turn) try {
  const text::ParsedTurn parsed = chat.parse(turn.at("text").get<std::string>(), turn.value("index", int64_t{0}));
  Json calls = Json::array();
  std::vector<text::ToolResult> results;
  for (const text::ToolCall& call : parsed.calls) {
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}, {"fault", call.fault}});
    const Json& answers = turn.at("answers");
    if (results.size() < answers.size()) results.push_back({call, answers[results.size()].get<std::string>()});
  }
  Json after = Json::array();
  for (const int64_t index : {0, 1}) {
    for (const Json& end : turn.at("ends"))
      after.push_back(results.empty() ? Json() : Json(chat.after(results, end.get<std::string>(), index)));
  }
  return {{"thinking", parsed.thinking}, {"text", parsed.text}, {"calls", calls}, {"after", after}};
} catch (const UserError& error) {
  return refused(error);
}

Json answer(const std::string& line) try {
  const Json input = parse_json(line, "input");
  const text::ChatTemplate chat(input.at("template").get<std::string>(), "template", input.at("special_tokens"));
  Json answer = {{"renders", Json::array()}, {"format", nullptr}, {"turns", Json::array()}};
  for (const Json& one : input.at("renders")) answer["renders"].push_back(rendered(chat, one));
  const Json variables = input.value("variables", Json::object());
  const auto format = text::find_tool_call_format(chat, variables);
  if (!format) return answer;
  answer["format"] = described(*format);
  const text::ToolChat tool_chat(chat, *format, input.at("tools"), variables);
  for (const Json& turn : input.at("turns")) answer["turns"].push_back(answered(tool_chat, turn));
  return answer;
} catch (const UserError& error) {
  return refused(error);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line).dump() << "\n";
}
