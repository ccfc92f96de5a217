// The forms in which published models write calls: short templates of our own, each learnt from what it renders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/tool_call_fixtures.h"
#include "text/tool_calls/find_format.h"
#include "text/tool_calls/tool_chat.h"

namespace sluice::text::tool_forms_test {
namespace {

using ::testing::HasSubstr;

struct Form {
  std::string name;
  std::string end;            // what the template writes after a turn that calls
  bool has_one_call = false;  // in a message, at most
};

const std::vector<Form> kForms = {{"actions", "<|END_OF_TURN_TOKEN|>"},
                                  {"channels", "<|call|>", /*has_one_call=*/true},
                                  {"fenced_sections", "<eos>"},
                                  {"fenced_text", "<｜end｜>"},
                                  {"ids_for_names", "<|im_end|>"},
                                  {"invoke_tags", "[e~["},
                                  {"keys_and_values", ""},
                                  {"marked_strings", "<|tool_response>"},
                                  {"name_and_json", "</s>"},
                                  {"parameter_tags", "<|im_end|>"},
                                  {"python_calls", "<|eot|>"},
                                  {"python_lines", "<|im_end|>"},
                                  {"tags_of_keys", "<|end|>"},
                                  {"told_strings", "<end>"},
                                  {"wrapped_objects", "<|end|>"}};

Json property(const std::string& type) { return {{"type", type}}; }

Json form_tools() {
  const Json properties = {{"city", property("string")},  {"days", property("integer")}, {"exact", property("boolean")},
                           {"ratio", property("number")}, {"names", property("array")},  {"place", property("object")},
                           {"none", property("null")},    {"digits", property("string")}};
  const auto tool = [](const std::string& name, const Json& fields) {
    const Json parameters = {{"type", "object"}, {"properties", fields}};
    return Json{{"type", "function"}, {"function", {{"name", name}, {"description", "a tool"}, {"parameters", parameters}}}};
  };
  return Json::array({tool("weather", properties), tool("now", Json::object())});
}

// Of every kind that JSON has, and texts that other kinds look like.
Json arguments_of_each_kind() {
  return {{"city", "Zürich \"Nord\", it's \\ <b>&"},
          {"days", 3},
          {"exact", true},
          {"ratio", -1.5},
          {"names", {"a", "b, c"}},
          {"place", {{"x", 1}}},
          {"none", nullptr},
          {"digits", "0123"}};
}

using NamedCalls = std::vector<std::pair<std::string, Json>>;

class FormChat {
 public:
  explicit FormChat(const Form& form) : form_(form), chat_(form_template(form.name)) {
    const auto format = find_tool_call_format(chat_);
    EXPECT_TRUE(format.has_value()) << form.name;
    format_ = format.value_or(ToolCallFormat{});
    tool_chat_ = std::make_unique<ToolChat>(chat_, format_, form_tools());
  }

  const ToolCallFormat& format() const { return format_; }
  const ToolChat& chat() const { return *tool_chat_; }

  Json message(const NamedCalls& calls, const std::string& reasoning = {}) const {
    Json list = Json::array();
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool has_name = format_.by_name && format_.by_name->name_is_id;
      const std::string number = std::to_string(i);
      const Json arguments = format_.wants_text ? Json(calls[i].second.dump()) : calls[i].second;
      list.push_back({{"type", "function"},
                      {"id", has_name ? "functions." + calls[i].first + ":" + number : "call0000" + number},
                      {"function", {{"name", calls[i].first}, {"arguments", arguments}}}});
    }
    Json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", list}};
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    return message;
  }

  std::string render(const Json& messages, bool add_generation_prompt) const {
    Json all = Json::array({Json{{"role", "user"}, {"content", "Well?"}}});
    for (const Json& one : messages) all.push_back(one);
    return chat_.render(
        all, {.add_generation_prompt = add_generation_prompt, .tools = form_tools(), .variables = Json::object(), .now = {}});
  }

  // What the model would write, from where its turn begins up to what ends it.
  std::string turn(const NamedCalls& calls, const std::string& reasoning = {}) const {
    const std::string text = render(Json::array({message(calls, reasoning)}), false);
    const std::string prompt = render(Json::array(), true);
    size_t begin = std::mismatch(text.begin(), text.end(), prompt.begin(), prompt.end()).first - text.begin();
    while (begin > 0 && begin < prompt.size() && text[begin] != '<') --begin;
    const size_t end = form_.end.empty() ? text.size() : text.rfind(form_.end);
    return text.substr(begin, end - begin);
  }

  NamedCalls read(const std::string& turn) const {
    NamedCalls calls;
    const bool is_open = trim(render(Json::array(), true)).ends_with("<think>") && turn.find("</think>") == std::string::npos;
    for (const ToolCall& call : chat().parse(is_open ? "Hm.</think>" + turn : turn, 0, form_.end).calls)
      calls.emplace_back(call.fault.empty() ? call.name : call.fault, call.arguments);
    return calls;
  }

 private:
  const Form form_;
  const ChatTemplate chat_;
  ToolCallFormat format_;
  std::unique_ptr<ToolChat> tool_chat_;
};

TEST(ToolForms, ValuesOfEveryKindComeBackAsTheyWere) {
  for (const Form& form : kForms) {
    const FormChat chat(form);
    const NamedCalls calls = {{"weather", arguments_of_each_kind()}};
    EXPECT_EQ(chat.read(chat.turn(calls)), calls) << form.name << ": " << chat.turn(calls);
  }
}

TEST(ToolForms, CallsBesideEachOtherAndWithoutArgumentsAreRead) {
  for (const Form& form : kForms) {
    const FormChat chat(form);
    const NamedCalls alone = {{"now", Json::object()}}, one = {{"weather", {{"city", "Bern"}, {"days", 3}}}};
    EXPECT_EQ(chat.read(chat.turn(alone)), alone) << form.name << ": " << chat.turn(alone);
    if (form.has_one_call) continue;
    const NamedCalls several = {one[0], alone[0], alone[0], one[0]};
    EXPECT_EQ(chat.read(chat.turn(several)), several) << form.name << ": " << chat.turn(several);
  }
}

TEST(ToolForms, ThinkingIsFoundBetweenTheTemplatesOwnMarks) {
  int shown = 0;
  for (const Form& form : kForms) {
    const FormChat chat(form);
    const std::string turn = chat.turn({{"now", Json::object()}}, "Which tool?");
    if (turn.find("Which tool?") == std::string::npos) continue;
    ++shown;
    const ParsedTurn parsed = chat.chat().parse(turn, 0, form.end);
    EXPECT_EQ(parsed.thinking, "Which tool?") << form.name << ": " << turn;
    ASSERT_EQ(parsed.calls.size(), 1u) << form.name;
    EXPECT_EQ(parsed.calls[0].fault, "") << form.name;
    EXPECT_EQ(parsed.text, "") << form.name;
  }
  EXPECT_GE(shown, 8);
}

// After a turn comes what the template itself writes there, whatever it leaves out of the turn.
TEST(ToolForms, WhatFollowsATurnIsWhatTheTemplateWrites) {
  for (const Form& form : kForms) {
    const FormChat chat(form);
    const NamedCalls calls = {{"weather", {{"city", "Bern-and-no-more"}}}};
    const Json call = chat.message(calls);
    const Json& id = call["tool_calls"][0]["id"];
    const Json answer = {{"role", "tool"}, {"name", "weather"}, {"tool_call_id", id}, {"content", "sunny"}};
    const std::string text = chat.render(Json::array({call, answer}), true);
    const ToolResult result{.call = {.id = id, .name = "weather", .arguments = Json::object(), .fault = {}}, .text = "sunny"};
    const std::string after = chat.chat().after({&result, 1}, form.end);
    ASSERT_TRUE(text.ends_with(after)) << form.name << ": " << after << "\n" << text;
    const std::string before = text.substr(0, text.size() - after.size());
    EXPECT_THAT(before.substr(before.rfind("Bern-and")), Not(HasSubstr("sunny")));
    EXPECT_TRUE(before.ends_with(form.end)) << form.name << ": " << before;
  }
}

TEST(ToolForms, TextWithoutACallIsText) {
  for (const Form& form : kForms) {
    const FormChat chat(form);
    for (const std::string answer : {"It is 4.", "[1, 2]", "[a](b)", "f(x) = 2", "{\"a\": 1}", ""}) {
      const ParsedTurn parsed = chat.format().parse(answer);
      EXPECT_TRUE(parsed.calls.empty()) << form.name << ": " << answer;
      EXPECT_EQ(parsed.text, answer) << form.name;
    }
  }
}

// Cut off at any byte a turn is no error, and has no call that it does not hold.
TEST(ToolForms, ACallThatIsCutOffHasAFaultOrIsNone) {
  for (const Form& form : kForms) {
    const FormChat chat(form);
    const NamedCalls calls = {{"weather", {{"city", "Bern"}, {"names", {"a"}}}}};
    const std::string turn = chat.turn(calls);
    for (size_t size = 0; size < turn.size(); ++size) {
      for (const ToolCall& call : chat.format().parse(turn.substr(0, size), false, form_tools()).calls) {
        if (call.fault.empty()) {
          EXPECT_EQ(call.arguments, calls[0].second) << form.name << ": " << turn.substr(0, size);
        }
      }
    }
  }
}

TEST(ToolForms, AMalformedCallSaysWhatIsWrong) {
  const auto fault = [](const std::string& form, const std::string& turn) {
    const auto found = std::ranges::find(kForms, form, &Form::name);
    const ParsedTurn parsed = FormChat(*found).format().parse(turn);
    return parsed.calls.empty() ? std::string("no call") : parsed.calls.back().fault;
  };
  EXPECT_THAT(fault("name_and_json", "[TOOL_CALLS]f[CALL_ID]x[ARGS]{\"a\": }"),
              HasSubstr("the arguments of the call are no JSON: "));
  EXPECT_EQ(fault("name_and_json", "[TOOL_CALLS]f[CALL_ID]x[ARGS][1]"), "the arguments of the call are no object");
  EXPECT_EQ(fault("name_and_json", "[TOOL_CALLS]f {}"), "the name of the call is not followed by [CALL_ID][ARGS]");
  EXPECT_EQ(fault("fenced_text", "<｜calls▁begin｜><｜call▁begin｜>function<｜sep｜>f\n```json\n{}"),
            "the call does not end with ```<｜call▁end｜><｜calls▁end｜>");
  EXPECT_EQ(fault("parameter_tags", "<tool_call>\n<function=f>\n<parameter=a>\n1"),
            "\"a\" of the call does not end with </parameter> </function> </tool_call>");
  EXPECT_EQ(fault("parameter_tags", "<tool_call>\n<function=f>\n<parameter=a\n1"), "no argument of the call stands before >");
  EXPECT_EQ(fault("parameter_tags", "<tool_call>\n<function="), "the name of the call is not followed by > <parameter=");
  EXPECT_EQ(fault("python_lines", "<function_calls>f(a=b c)</function_calls>"), "\"a\" of the call is no value");
  EXPECT_EQ(fault("python_lines", "<function_calls>f(a=1</function_calls>"), "the call does not end with )</function_calls>");
}

TEST(ToolForms, ACallBesideAMalformedOneIsRead) {
  const FormChat chat(*std::ranges::find(kForms, "parameter_tags", &Form::name));
  const ParsedTurn parsed = chat.format().parse(
      "First <tool_call><function=f></function><tool_call><function=g>\n<parameter=a>\n1\n</parameter></function></tool_call> "
      "so.");
  ASSERT_EQ(parsed.calls.size(), 2u);
  EXPECT_NE(parsed.calls[0].fault, "");
  EXPECT_EQ(parsed.calls[1].name, "g");
  EXPECT_EQ(parsed.text, "First\nso.");
}

TEST(ToolForms, BlanksAroundTagsAreAsTheModelLikes) {
  const FormChat chat(*std::ranges::find(kForms, "parameter_tags", &Form::name));
  for (const std::string turn :
       {"<tool_call><function=weather><parameter=city>Bern</parameter></function></tool_call>",
        "<tool_call>\n\n  <function=weather>\n <parameter=city>\nBern\n</parameter>\n\n</function> </tool_call>"})
    EXPECT_EQ(chat.read("</think>" + turn), (NamedCalls{{"weather", {{"city", "Bern"}}}})) << turn;
  // Of a value itself only what the template writes around it is taken off.
  EXPECT_EQ(chat.read("</think><tool_call><function=weather><parameter=city>\n  a\n\n</parameter></function></tool_call>"),
            (NamedCalls{{"weather", {{"city", "  a\n"}}}}));
}

TEST(ToolForms, AModelMayWriteMoreBeforeTheLastMarkOfItsArguments) {
  const FormChat chat(*std::ranges::find(kForms, "channels", &Form::name));
  EXPECT_EQ(chat.read("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.now "
                      "<|constrain|>json<|message|>{\"a\": 1}"),
            (NamedCalls{{"now", {{"a", 1}}}}));
}

TEST(ToolForms, TheIdThatStandsForANameIsKept) {
  const FormChat chat(*std::ranges::find(kForms, "ids_for_names", &Form::name));
  const ParsedTurn parsed =
      chat.format().parse("</think><|calls_begin|><|call_begin|>functions.now:7<|argument_begin|>{}<|call_end|><|calls_end|>");
  ASSERT_EQ(parsed.calls.size(), 1u);
  EXPECT_EQ(parsed.calls[0].name, "now");
  EXPECT_EQ(parsed.calls[0].id, "functions.now:7");
}

TEST(ToolForms, CallsBeyondTheMostAreOneFault) {
  const FormChat chat(*std::ranges::find(kForms, "python_lines", &Form::name));
  std::string turn = "<function_calls>";
  for (int i = 0; i < 100; ++i) turn += "f(a=1)\n";
  const ParsedTurn parsed = chat.format().parse(turn + "</function_calls>");
  EXPECT_EQ(parsed.calls.size(), 65u);
  EXPECT_EQ(parsed.calls.back().fault, "the turn has more than 64 calls");
}

}  // namespace
}  // namespace sluice::text::tool_forms_test
