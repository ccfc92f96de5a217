#include "nodes/scorers/json/json_schema.h"

#include "base/error.h"
#include "tests/nodes/scorers/text_groups.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::json_schema_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonSchemaTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& schema) { return folder_.write("answer.schema.json", schema); }

  bool accepts(const std::string& schema, const std::string& text) { return JsonSchemaChecker(file(schema)).accepts(text); }

  std::string refusal(const std::string& schema) {
    const auto problems = NodeHarness<JsonSchema>::problems({{"schema", {file(schema).string()}}});
    return problems.empty() ? "none" : problems.front();
  }

  float fenced(const std::string& response) {
    JsonSchemaParams params;
    params.schema = file(R"({"type": "object", "required": ["answer"]})");
    params.extract = JsonPlace::kFenced;
    return score_of<JsonSchema>(params, response);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(JsonSchemaTest, ResponseMustBeValid) {
  JsonSchemaParams params;
  params.schema = file(R"({"type": "object", "properties": {"answer": {"type": "integer", "minimum": 0}}, "required": ["answer"],
                           "additionalProperties": false})");
  for (const char* response : {R"({"answer": 5})", " {\"answer\": 5}\n", R"({"answer": 5.0})"}) {
    EXPECT_EQ(score_of<JsonSchema>(params, response), 1) << response;
  }
  for (const char* response : {R"({"answer": -5})", R"({"answer": "5"})", R"({"answer": 5, "why": ""})", "{}", "[]", "5", "", "{",
                               R"(Sure: {"answer": 5})", "{\"answer\": 5}\xff"}) {
    EXPECT_EQ(score_of<JsonSchema>(params, response), 0) << response;
  }
}

TEST_F(JsonSchemaTest, ResponseOnWhichAPatternGivesUpDoesNotEndTheRun) {
  JsonSchemaParams params;
  params.schema = file(R"({"type": "string", "pattern": "^(a|a)+$"})");
  const std::string too_much = "\"" + std::string(100, 'a') + "!\"";
  EXPECT_EQ(score_of<JsonSchema>(params, "\"aa\""), 1);
  EXPECT_EQ(score_of<JsonSchema>(params, too_much), 0);
  params.on_error = OnError::kFail;
  EXPECT_THAT(message_of<UserError>([&] { score_of<JsonSchema>(params, too_much); }), HasSubstr("gave up"));
}

// From the test suite of JSON Schema, draft 7.
TEST_F(JsonSchemaTest, KeywordsMeanWhatTheDraftSays) {
  EXPECT_TRUE(accepts(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", "1"));
  EXPECT_FALSE(accepts(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", "3"));
  EXPECT_TRUE(accepts(R"({"contains": {"minimum": 5}})", "[3, 4, 5]"));
  EXPECT_FALSE(accepts(R"({"contains": {"minimum": 5}})", "[2, 3, 4]"));
  EXPECT_FALSE(accepts(R"({"if": {"exclusiveMaximum": 0}, "then": {"minimum": -10}})", "-100"));
  EXPECT_TRUE(accepts(R"({"items": [{"type": "integer"}, {"type": "string"}]})", R"([1, "foo"])"));
  EXPECT_FALSE(accepts(R"({"items": [{}], "additionalItems": {"type": "integer"}})", R"([null, 2, 3, "foo"])"));
  EXPECT_FALSE(accepts(R"({"dependencies": {"bar": ["foo"]}})", R"({"bar": 2})"));
  EXPECT_FALSE(accepts(R"({"uniqueItems": true})", "[1, 1]"));
  EXPECT_FALSE(accepts(R"({"const": 2})", "5"));
  EXPECT_TRUE(accepts(R"({"maxLength": 2})", "\"\u4f60\u597d\""));
  EXPECT_FALSE(accepts("false", "1"));
}

// From the test suite of JSON Schema, draft 7, optional/bignum.json and float-overflow.json; and numbers that are the same double.
TEST_F(JsonSchemaTest, IntegersAreExactWhateverTheirSize) {
  for (const char* integer :
       {"12345678910111213141516171819202122232425262728293031", "18446744073709551616", "18446744073709551615",
        "-12345678910111213141516171819202122232425262728293031", "1e30", "1.5e2"}) {
    EXPECT_TRUE(accepts(R"({"type": "integer"})", integer)) << integer;
    EXPECT_TRUE(accepts(R"({"type": "number"})", integer)) << integer;
    EXPECT_FALSE(accepts(R"({"type": "string"})", integer)) << integer;
  }
  EXPECT_FALSE(accepts(R"({"type": "integer"})", "1.5"));
  EXPECT_FALSE(accepts(R"({"type": "integer"})", R"("18446744073709551616")"));
  EXPECT_TRUE(accepts(R"({"maximum": 18446744073709551615})", "18446744073709551600"));
  EXPECT_TRUE(accepts(R"({"minimum": -18446744073709551615})", "-18446744073709551600"));
  EXPECT_FALSE(accepts(R"({"maximum": 9007199254740992})", "9007199254740993"));
  EXPECT_FALSE(accepts(R"({"exclusiveMinimum": 18446744073709551615})", "18446744073709551615"));
  EXPECT_FALSE(accepts(R"({"enum": [9007199254740993]})", "9007199254740992"));
  EXPECT_FALSE(accepts(R"({"const": 18446744073709551616})", "18446744073709551617"));
  EXPECT_FALSE(accepts(R"({"const": 18446744073709551616})", R"("18446744073709551616")"));
  EXPECT_TRUE(accepts(R"({"const": {"a": [1e30]}})", R"({"a": [1000000000000000000000000000000]})"));
  EXPECT_FALSE(accepts(R"({"maximum": 0})", "18446744073709551615"));  // read as a signed number it is -1
}

TEST_F(JsonSchemaTest, MultiplesAreThoseOfTheDecimalsThatAreWritten) {
  EXPECT_TRUE(accepts(R"({"multipleOf": 0.01})", "4.02"));
  EXPECT_FALSE(accepts(R"({"multipleOf": 0.01})", "4.021"));
  EXPECT_TRUE(accepts(R"({"multipleOf": 0.0001})", "0.0075"));
  EXPECT_FALSE(accepts(R"({"multipleOf": 2})", "2.5"));
  EXPECT_TRUE(accepts(R"({"multipleOf": 3})", "123456789012345678901234567890"));  // the sum of its digits is 135
  EXPECT_FALSE(accepts(R"({"multipleOf": 3})", "123456789012345678901234567891"));
  EXPECT_TRUE(accepts(R"({"multipleOf": 0.5, "type": "integer"})", "1e308"));
}

TEST_F(JsonSchemaTest, LengthsAreOfTexts) {
  EXPECT_FALSE(accepts(R"({"minLength": 2})", "\"\u4f60\""));
  EXPECT_TRUE(accepts(R"({"minLength": 30})", "18446744073709551616"));
}

// From the test suite, uniqueItems.json.
TEST_F(JsonSchemaTest, ItemsAreUniqueByTheirValue) {
  const char* unique = R"({"uniqueItems": true})";
  for (const char* list : {"[1, true]", "[0, false]", R"([1, "1"])", R"([{"a": 1}, {"a": 2}])", R"(["[1]", [1]])",
                           "[[1], [true]]", "5", "[9007199254740992, 9007199254740993]", "[]"}) {
    EXPECT_TRUE(accepts(unique, list)) << list;
  }
  for (const char* list :
       {"[1.0, 1.00, 1]", R"([{"a": 1, "b": 2}, {"b": 2, "a": 1}])", "[[1, [2]], [1, [2]]]", "[null, 1, null]"}) {
    EXPECT_FALSE(accepts(unique, list)) << list;
    EXPECT_TRUE(accepts(R"({"uniqueItems": false})", list)) << list;
  }
}

// Each compared with every other one took half a minute.
TEST_F(JsonSchemaTest, ManyItemsAreComparedInNoTime) {
  std::string list = "[0";
  for (int i = 1; i < 200'000; ++i) list += "," + std::to_string(i);
  EXPECT_TRUE(accepts(R"({"uniqueItems": true})", list + "]"));
  EXPECT_FALSE(accepts(R"({"uniqueItems": true})", list + ",0]"));
}

TEST_F(JsonSchemaTest, ReferencesMayDescribeTrees) {
  const char* tree = R"({"$ref": "#/definitions/node", "definitions":
    {"node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/node"}}}}}})";
  EXPECT_TRUE(accepts(tree, R"({"children": [{"children": []}, {}]})"));
  EXPECT_FALSE(accepts(tree, R"({"children": [{"children": [5]}]})"));
}

TEST_F(JsonSchemaTest, PatternsAreThoseOfTheStandard) {
  EXPECT_TRUE(accepts(R"({"pattern": "^a*$"})", R"("aaa")"));
  EXPECT_FALSE(accepts(R"({"pattern": "^a*$"})", R"("abc")"));
  EXPECT_TRUE(accepts(R"({"pattern": "a+"})", R"("xxaayy")"));
  EXPECT_TRUE(accepts(R"({"pattern": "^a"})", "5"));
  EXPECT_FALSE(accepts(R"({"pattern": "^b$"})", R"("a\nb\nc")"));  // ends of the text, not of a line
  EXPECT_FALSE(accepts(R"({"pattern": "^\\d$"})", "\"\u0663\""));  // a digit, but not of ASCII
  EXPECT_TRUE(accepts(R"({"pattern": "^[[&]$"})", R"("[")"));
  EXPECT_FALSE(accepts(R"({"propertyNames": {"pattern": "^a+$"}})", R"({"aa": 1, "b": 2})"));
}

TEST_F(JsonSchemaTest, PatternIsCheckedOnTextsOfAnyLength) {
  const std::string text(1'000'000, 'a');
  EXPECT_TRUE(accepts(R"({"pattern": "^(a|b)*$"})", "\"" + text + "\""));
}

TEST_F(JsonSchemaTest, PropertyMayBeCalledLikeAKeyword) {
  const char* schema = R"({"properties": {"pattern": {"type": "integer"}, "format": {"pattern": "^x"}, "prefixItems": true}})";
  EXPECT_TRUE(accepts(schema, R"({"pattern": 5, "format": "x"})"));
  EXPECT_FALSE(accepts(schema, R"({"pattern": "5"})"));
  EXPECT_FALSE(accepts(schema, R"({"format": "y"})"));
}

TEST_F(JsonSchemaTest, FormatsAreDatesAndTimes) {
  for (const char* text : {"\"2024-02-29\"", "5"}) EXPECT_TRUE(accepts(R"({"format": "date"})", text)) << text;
  for (const char* text : {"\"2023-02-29\"", "\"2024-2-1\"", "\"24-02-01\"", "\"2024-13-01\"", "\"\""}) {
    EXPECT_FALSE(accepts(R"({"format": "date"})", text)) << text;
  }
  for (const char* text : {"\"16:52:45Z\"", "\"16:52:45.25+02:00\""}) EXPECT_TRUE(accepts(R"({"format": "time"})", text)) << text;
  for (const char* text : {"\"16:52:45\"", "\"24:00:00Z\"", "\"16:52:45.Z\"", "\"16:52:45+2:00\""}) {
    EXPECT_FALSE(accepts(R"({"format": "time"})", text)) << text;
  }
  EXPECT_TRUE(accepts(R"({"format": "date-time"})", "\"1985-04-12T23:20:50.52Z\""));
  EXPECT_FALSE(accepts(R"({"format": "date-time"})", "\"1985-04-12 23:20:50Z\""));
}

TEST_F(JsonSchemaTest, LastJsonBlockCounts) {
  EXPECT_EQ(fenced("Sure:\n```json\n{}\n```\nno:\n```json\n{\"answer\": 5}\n```\n"), 1);
  EXPECT_EQ(fenced("```json\n{\"answer\": 5}\n```\n```json\n{}\n```"), 0);
  EXPECT_EQ(fenced("```json\n{\"answer\": 5}\n```\n```python\nprint()\n```"), 1);
  EXPECT_EQ(fenced("````JSON\n{\"answer\": \"```\"}\n````"), 1);
  EXPECT_EQ(fenced("```json\n{\"answer\": 5}"), 0);  // cut off
  EXPECT_EQ(fenced("{\"answer\": 5}"), 0);
  EXPECT_EQ(fenced("```\n```json\n{\"answer\": 5}\n```"), 0);  // in another block
  EXPECT_EQ(fenced("```json\n```"), 0);
}

TEST_F(JsonSchemaTest, SchemaThatCannotBeUsedIsFoundBeforeTheRun) {
  EXPECT_THAT(refusal("{\n  \"type\": }"), HasSubstr("answer.schema.json:2:11: invalid JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("a schema must be an object"));
  EXPECT_THAT(refusal(R"({"type": "strin"})"), HasSubstr("type must be \"object\" or another type of JSON"));
  EXPECT_THAT(refusal(R"({"type": 5})"), HasSubstr("type must be"));
  EXPECT_THAT(refusal(R"({"enum": 5})"), HasSubstr("enum must be a list"));
  EXPECT_THAT(refusal(R"({"uniqueItems": 1})"), HasSubstr("uniqueItems must be true or false"));
  EXPECT_THAT(refusal(R"({"maxItems": 18446744073709551616})"), HasSubstr("an integer of at least 0 is expected, below 2^63"));
  EXPECT_THAT(refusal(R"({"required": "a"})"), HasSubstr("is no JSON schema"));
  EXPECT_THAT(refusal(R"({"minLength": "many"})"), HasSubstr("at \"#/minLength\": a number is expected"));
  EXPECT_THAT(refusal(R"({"minLength": "1"})"), HasSubstr("a number is expected"));
  EXPECT_THAT(refusal(R"({"maximum": "5"})"), HasSubstr("at \"#/maximum\": a number is expected"));
  EXPECT_THAT(refusal(R"({"maxItems": -1})"), HasSubstr("an integer of at least 0 is expected"));
  EXPECT_THAT(refusal(R"({"maxItems": 1.5})"), HasSubstr("an integer of at least 0 is expected"));
  for (const std::string divisor : {"0", "0.0", "-1", "-0.5"})  // the library would divide by it
    EXPECT_THAT(refusal("{\"multipleOf\": " + divisor + "}"), HasSubstr("a number above 0 is expected")) << divisor;
  EXPECT_THAT(refusal(R"({"properties": {"a": {"pattern": "(b"}}})"),
              HasSubstr("at \"#/properties/a\": pattern: the regular expression"));
  EXPECT_THAT(refusal(R"({"$ref": "other.json"})"), HasSubstr("another document"));
  EXPECT_THAT(refusal(R"({"$ref": "#/definitions/a"})"), HasSubstr("leads to no schema"));
}

TEST_F(JsonSchemaTest, WhatWouldBeIgnoredIsRefused) {
  EXPECT_THAT(refusal(R"({"prefixItems": []})"), HasSubstr("prefixItems is not supported"));
  EXPECT_THAT(refusal(R"({"items": {"patternProperties": {}}})"),
              HasSubstr("at \"#/items\": patternProperties is not supported"));
  EXPECT_THAT(refusal(R"({"format": "email"})"), HasSubstr("format \"email\" is not checked"));
  EXPECT_THAT(refusal(R"({"requierd": ["a"]})"), HasSubstr("requierd is no keyword"));
}

TEST_F(JsonSchemaTest, CirclesOfReferencesAreRefused) {
  EXPECT_THAT(refusal(R"({"$ref": "#"})"), HasSubstr("leads back"));
  EXPECT_THAT(refusal(R"({"anyOf": [{"$ref": "#"}, {"type": "string"}]})"), HasSubstr("leads back"));
  EXPECT_THAT(
      refusal(
          R"({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}})"),
      HasSubstr("leads back"));
}

TEST_F(JsonSchemaTest, MissingFileIsFoundBeforeTheRun) {
  EXPECT_THAT(NodeHarness<JsonSchema>::problems({{"schema", {std::string("/nowhere/a.json")}}}), ::testing::SizeIs(1));
}

}  // namespace
}  // namespace sluice::nodes::json_schema_test
