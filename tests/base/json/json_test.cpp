#include "base/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::json_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_json(text, "x.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": [true, null, "x"]})", "x.json").dump(), R"({"z":1,"a":[true,null,"x"]})");
}

TEST(Json, KeepsIntegersOf64Bits) {
  EXPECT_EQ(parse_json("-9223372036854775808", "x.json").get<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_json("18446744073709551615", "x.json").get<uint64_t>(), std::numeric_limits<uint64_t>::max());
}

TEST(Json, AnErrorPointsAtItsPlace) {
  EXPECT_EQ(error_of("{\n  \"a\" 1\n}"),
            "x.json:2:7: error: invalid JSON\n    2 |   \"a\" 1\n      |       ^ unexpected number literal; expected ':'\n");
}

TEST(Json, ColumnsCountCodePoints) { EXPECT_THAT(error_of("[\"größe\", x]"), HasSubstr("x.json:1:11: error")); }

TEST(Json, SaysWhyAStringIsMalformed) {
  EXPECT_THAT(error_of("\"abc"), HasSubstr("invalid string: missing closing quote\n"));
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("invalid string: ill-formed UTF-8 byte\n"));
  EXPECT_THAT(error_of(R"("\ud800")"), HasSubstr("must be followed by U+DC00..U+DFFF\n"));
}

class BrokenJson : public testing::TestWithParam<std::string> {};

TEST_P(BrokenJson, IsAUserError) { EXPECT_THAT(error_of(GetParam()), HasSubstr("x.json")); }

INSTANTIATE_TEST_SUITE_P(Json, BrokenJson,
                         testing::Values("", " ", "{", "[1,2", "[1,]", "{\"a\":1,}", "'a'", "NaN", "nul", "1 2", "1e999",
                                         "-1e999", "[1e400]", "\x01", std::string("\0", 1), "{1:2}", "01", "+1", ".5"));

TEST(Json, DeepNestingIsRefusedWithoutOverflowingTheStack) {
  EXPECT_NO_THROW(parse_json(std::string(500, '[') + std::string(500, ']'), "x.json"));
  EXPECT_THAT(error_of(std::string(1000000, '[') + std::string(1000000, ']')), HasSubstr("x.json nests deeper than 512 levels"));
  EXPECT_THAT(error_of(std::string(1000000, '[')), HasSubstr("x.json"));
}

TEST(Json, WideObjectsAreRefused) {
  std::string wide = "[{}";
  for (int i = 0; i < 5000; ++i) wide += ",{\"a\":" + std::to_string(i) + "}";
  EXPECT_EQ(parse_json(wide + "]", "x.json").size(), 5001u);  // many keys, but not in one object
  std::string object = "{\"z\":{}";
  for (int i = 0; i < 5000; ++i) object += ",\"" + std::to_string(i) + "\":0";
  EXPECT_THAT(error_of(object + "}"), HasSubstr("x.json has an object of more than 4096 keys"));
}

TEST(Json, AMissingFileIsNamed) {
  try {
    read_json("no/such/file.json");
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "error: cannot read no/such/file.json: No such file or directory\n      = help: there is no folder no/such\n");
  }
}

}  // namespace
}  // namespace sluice::json_test
