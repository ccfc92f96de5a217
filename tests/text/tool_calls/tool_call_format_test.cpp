#include "text/tool_calls/tool_call_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/chat_template_fixtures.h"

namespace sluice::text::tool_call_format_test {
namespace {

using ::testing::HasSubstr;

const ToolCallFormat kHermes = tool_call_format("hermes"), kLlama = tool_call_format("llama3");

// "add({"a":1})", or the fault.
std::vector<std::string> calls_of(const ParsedTurn& turn) {
  std::vector<std::string> texts;
  for (const ToolCall& call : turn.calls)
    texts.push_back(call.fault.empty() ? call.name + "(" + call.arguments.dump() + ")" : call.fault);
  return texts;
}

std::vector<std::string> calls_of(const std::string& format, std::string_view turn) {
  return calls_of(tool_call_format(format).parse(turn));
}

using Calls = std::vector<std::string>;

TEST(ToolCallFormat, EachFormatReadsItsCalls) {
  const Calls add{"add({\"a\":1})"}, two{"add({\"a\":1})", "now({})"};
  const std::string both = R"([{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}])";
  EXPECT_EQ(calls_of("hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"), add);
  EXPECT_EQ(calls_of("hermes",
                     "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call><tool_call>"
                     "{\"name\":\"now\",\"arguments\":{}}</tool_call>"),
            two);
  EXPECT_EQ(calls_of("mistral", "[TOOL_CALLS] " + both), two);
  EXPECT_EQ(calls_of("mistral", R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 1}, "id": "abcdefghi"}])"), add);
  EXPECT_EQ(calls_of("llama3", R"({"name": "add", "parameters": {"a": 1}})"), add);
  EXPECT_EQ(calls_of("llama3", R"(<|python_tag|>{"name": "add", "parameters": {"a": 1}})"), add);
  EXPECT_EQ(calls_of("openai", both), two);
  EXPECT_EQ(calls_of("openai", R"([{"id": "x", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}])"),
            add);
}

TEST(ToolCallFormat, TextAroundCallsIsText) {
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  const ParsedTurn turn = kHermes.parse("First.\n" + call + " then " + call + "\n");
  EXPECT_EQ(turn.text, "First.\nthen");
  EXPECT_EQ(turn.calls.size(), 2u);
  EXPECT_EQ(kHermes.parse(" The answer is 4. ").text, "The answer is 4.");
  EXPECT_THAT(calls_of("hermes", "The answer is {\"name\": \"f\"}."), ::testing::IsEmpty());
}

TEST(ToolCallFormat, BareJsonThatIsNoCallIsAnAnswer) {
  for (const std::string answer : {"4", "{\"sum\": 4}", "{1, 2, 3}", "[1, 2]", "{}", "[]", "{", "", "say {\"name\": \"f\"}"}) {
    EXPECT_THAT(kLlama.parse(answer).calls, ::testing::IsEmpty()) << answer;
    EXPECT_EQ(kLlama.parse(answer).text, answer);
  }
}

TEST(ToolCallFormat, ThinkingIsTakenOffAndCallsNothing) {
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  ParsedTurn turn = kHermes.parse("<think>\nshall I " + call + "?\n</think>\n\n" + call);
  EXPECT_EQ(turn.thinking, "shall I " + call + "?");
  EXPECT_EQ(calls_of(turn), Calls{"f({})"});
  turn = kHermes.parse("shall I?\n</think>\n\nNo.", /*begins_thinking=*/true);
  EXPECT_EQ(turn.thinking, "shall I?");
  EXPECT_EQ(turn.text, "No.");
  turn = kHermes.parse("<think>for ever " + call);
  EXPECT_EQ(turn.thinking, "for ever " + call);
  EXPECT_THAT(turn.calls, ::testing::IsEmpty());
  EXPECT_THAT(kHermes.parse("for ever " + call, /*begins_thinking=*/true).calls, ::testing::IsEmpty());
}

TEST(ToolCallFormat, AMalformedCallHasAReason) {
  const auto fault = [](const std::string& json) { return calls_of("hermes", "<tool_call>" + json + "</tool_call>").at(0); };
  EXPECT_THAT(fault("{\"name\": \"f\", \"arguments\": {}"), HasSubstr("the call is no JSON: unexpected end of input"));
  EXPECT_THAT(fault("f(1)"), HasSubstr("the call is no JSON: this is not a JSON value at character 2"));
  EXPECT_EQ(fault("3"), "the call is no JSON object");
  EXPECT_EQ(fault("[]"), "the list of calls is empty");
  EXPECT_EQ(fault("{\"arguments\": {}}"), "the call has no \"name\" that is a string");
  EXPECT_EQ(fault("{\"name\": 3, \"arguments\": {}}"), "the call has no \"name\" that is a string");
  EXPECT_EQ(fault("{\"name\": \"f\"}"), "the call has no \"arguments\"");
  EXPECT_EQ(fault("{\"name\": \"f\", \"arguments\": [1]}"), "\"arguments\" of the call is no object");
  EXPECT_EQ(fault("{\"name\": \"f\", \"arguments\": \"{\"}"), "\"arguments\" of the call is no object");
  EXPECT_THAT(fault(std::string(600, '[')), HasSubstr("nests deeper than 512"));
  EXPECT_EQ(calls_of("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}").at(0),
            "the call does not end with </tool_call>");
  EXPECT_THAT(calls_of("llama3", "{\"name\": \"f\", \"parameters\": {").at(0), HasSubstr("unexpected end of input"));
  EXPECT_THAT(calls_of("mistral", "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}] or so").at(0), HasSubstr("is no JSON"));
}

TEST(ToolCallFormat, ACallBesideAMalformedOneIsACall) {
  EXPECT_EQ(
      calls_of("hermes", "<tool_call>{\"name\": \"f</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>")
          .back(),
      "g({})");
}

TEST(ToolCallFormat, AMarkWithinAStringEndsNoCall) {
  EXPECT_EQ(calls_of("hermes", R"(<tool_call>{"name": "say", "arguments": {"text": "a </tool_call> \" b"}}</tool_call>)"),
            Calls{R"(say({"text":"a </tool_call> \" b"}))"});
}

TEST(ToolCallFormat, CallsBeyondTheMostAreOneFault) {
  std::string turn;
  const auto calls = [&](size_t count) {
    turn.clear();
    for (size_t i = 0; i < count; ++i) turn += "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
    return calls_of("hermes", turn);
  };
  EXPECT_EQ(calls(64).back(), "f({})");
  EXPECT_EQ(calls(64).size(), 64u);
  EXPECT_EQ(calls(5000).back(), "the turn has more than 64 calls");
  EXPECT_EQ(calls(5000).size(), 65u);
}

TEST(ToolCallFormat, AnUnknownNameIsAnErrorThatNamesTheOthers) {
  EXPECT_THAT(error_of([] { tool_call_format("hermse"); }), HasSubstr("\"hermse\" is no format of tool calls"));
  EXPECT_THAT(error_of([] { tool_call_format(""); }), HasSubstr("hermes, mistral, llama3, openai"));
}

}  // namespace
}  // namespace sluice::text::tool_call_format_test
