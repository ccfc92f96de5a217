#include "text/tool_calls/call_value.h"

#include <gtest/gtest.h>

namespace sluice::text::call_value_test {
namespace {

// The value at the beginning, with what is after it; "none" where there is none.
std::string read(std::string_view text, std::string_view quote = {}) {
  size_t at = 0;
  const auto value = read_call_value(text, at, quote);
  return value ? value->dump() + "|" + std::string(text.substr(at)) : "none";
}

TEST(CallValue, ReadsWhatJsonAndPythonWrite) {
  EXPECT_EQ(read("1, b=2"), "1|, b=2");
  EXPECT_EQ(read("-1.5e3)"), "-1500.0|)");
  EXPECT_EQ(read("True]"), "true|]");
  EXPECT_EQ(read("null"), "null|");
  EXPECT_EQ(read("None"), "null|");
  EXPECT_EQ(read("'it\\'s' rest"), "\"it's\"| rest");
  EXPECT_EQ(read(R"("a\nb\u00fc\ud83d\ude00\x41\d")"), "\"a\\nbü😀A\\\\d\"|");
  EXPECT_EQ(read(R"("\ud83d")"), "\"\xEF\xBF\xBD\"|");  // half of a pair
  EXPECT_EQ(read("[1, 'a', [], (2, 3), {'k': None}, ]x"), "[1,\"a\",[],[2,3],{\"k\":null}]|x");
  EXPECT_EQ(read("{\"a\": {\"b\": [true]}, c: 1}"), "{\"a\":{\"b\":[true]},\"c\":1}|");
}

TEST(CallValue, AMarkMayStandAroundStrings) {
  EXPECT_EQ(read("{k:<|\"|>a \"b\" \\<|\"|>,n:[<|\"|>c<|\"|>]}", "<|\"|>"), "{\"k\":\"a \\\"b\\\" \\\\\",\"n\":[\"c\"]}|");
  EXPECT_EQ(read("<|\"|>open", "<|\"|>"), "none");
}

TEST(CallValue, WhatIsNoneIsNoError) {
  for (const char* text :
       {"", "word", "'open", "[1", "[1 2]", "{", "{:1}", "{a}", "{a:}", "1-2", "--1", "\"\\u12\"", "'\xFF'", "(", "{1:{}"})
    EXPECT_EQ(read(text), "none") << text;
  EXPECT_EQ(read(std::string(1000, '[')), "none");
}

TEST(TypedCallValue, PlainTextIsWhatTheSchemaHas) {
  const auto typed = [](const std::string& raw, const Json& schema) { return typed_call_value(raw, schema, nullptr).dump(); };
  const auto of = [](const char* type) { return Json{{"type", type}}; };
  EXPECT_EQ(typed("12", of("string")), "\"12\"");
  EXPECT_EQ(typed("12", of("integer")), "12");
  EXPECT_EQ(typed("12.0", of("integer")), "12");
  EXPECT_EQ(typed("12.5", of("integer")), "\"12.5\"");  // the tool may say what is wrong
  EXPECT_EQ(typed("12", of("number")), "12");
  EXPECT_EQ(typed(" True\n", of("boolean")), "true");
  EXPECT_EQ(typed("yes", of("boolean")), "\"yes\"");
  EXPECT_EQ(typed("['a']", of("array")), "[\"a\"]");
  EXPECT_EQ(typed("{\"a\": 1} b", of("object")), "\"{\\\"a\\\": 1} b\"");
  EXPECT_EQ(typed("null", {{"type", {"string", "null"}}}), "null");
  EXPECT_EQ(typed("12", {{"type", {"string", "integer"}}}), "\"12\"");
  EXPECT_EQ(typed("12", {{"anyOf", {of("integer"), of("null")}}}), "12");
  EXPECT_EQ(typed("2", {{"enum", {1, 2}}}), "2");
  EXPECT_EQ(typed("2", {{"enum", {"1", "2"}}}), "\"2\"");
  EXPECT_EQ(typed("[1]", nullptr), "[1]");  // no schema: what reads as JSON is that
  EXPECT_EQ(typed("\"a\"", nullptr), "\"\\\"a\\\"\"");
  EXPECT_EQ(typed("01", nullptr), "\"01\"");
}

TEST(TypedCallValue, ReferencesOfASchemaAreFollowed) {
  const Json root = {{"$defs", {{"Count", {{"type", "integer"}}}, {"Loop", {{"$ref", "#/$defs/Loop"}}}}}};
  EXPECT_EQ(typed_call_value("3", {{"$ref", "#/$defs/Count"}}, root), 3);
  EXPECT_EQ(typed_call_value("3", {{"$ref", "#/$defs/Loop"}}, root), 3);
  EXPECT_EQ(typed_call_value("3", {{"$ref", "#/nowhere"}}, root), 3);
  EXPECT_EQ(typed_call_value("3", {{"$ref", "#/~9"}}, root), 3);
}

}  // namespace
}  // namespace sluice::text::call_value_test
