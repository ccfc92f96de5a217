// What a person reads when a pipeline file is wrong: tests/golden/dsl/NAME.toml gives NAME.expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/parse.h"
#include "tests/dsl/working_folder.h"
#include "tests/engine/known_kinds.h"
#include "tests/golden.h"

namespace sluice::dsl::errors_test {
namespace {

using testing::HasSubstr;

class WrongFile : public testing::TestWithParam<std::string> {};

TEST_P(WrongFile, IsReportedAsInTheGoldenFile) {
  const WorkingFolder folder(golden_folder());
  const LoadResult result = load_pipeline(GetParam() + ".toml", {});
  EXPECT_TRUE(has_errors(result.problems));
  engine::testing::expect_known_kinds(result.problems);
  expect_golden("dsl/" + GetParam() + ".expected", render(result.problems));
}

INSTANTIATE_TEST_SUITE_P(Dsl, WrongFile,
                         testing::Values("shapes", "removes", "tables", "unicode", "bare_word", "bare_path", "key_twice",
                                         "table_twice", "open_string", "open_array", "open_header", "no_value", "two_values",
                                         "no_equals", "capital", "large_integer", "no_zero", "not_utf8", "zero_byte", "circle_a",
                                         "extends_missing", "extends_array"),
                         [](const auto& info) { return info.param; });

TEST(Errors, AGoodFileHasNone) {
  const WorkingFolder folder(golden_folder());
  EXPECT_EQ(render(load_pipeline("ppo.toml", {}).problems), "");
}

TEST(Errors, AMissingFileIsNamedAsTypedWithTheFileThatWasMeant) {
  const WorkingFolder folder(golden_folder().parent_path());
  EXPECT_EQ(render(load_pipeline("dsl/ppp.toml", {}).problems),
            "error: cannot read dsl/ppp.toml: No such file or directory\n      = help: did you mean dsl/ppo.toml?\n");
}

TEST(Errors, AFileNameWithoutItsEndingIsUnderstood) {
  const WorkingFolder folder(golden_folder());
  EXPECT_THAT(render(load_pipeline("ppo", {}).problems), HasSubstr("did you mean ppo.toml?"));
}

TEST(Errors, AFolderIsNotAFile) {
  const WorkingFolder folder(golden_folder().parent_path());
  EXPECT_EQ(render(load_pipeline("dsl", {}).problems), "error: cannot read dsl: it is a folder, not a file\n");
}

TEST(Errors, AnEndlessFileIsRefused) {
  EXPECT_THAT(render(load_pipeline("/dev/zero", {}).problems), HasSubstr("cannot read /dev/zero: it is a device, not a file"));
}

std::string problems_of(const std::string& text) { return render(parse_pipeline(text, "x.toml", "", {}).problems); }

TEST(Errors, YamlIsRecognisedAndItsBeginIsShownInToml) {
  EXPECT_EQ(problems_of("---\n# a pipeline\nmodels:\n  lora:\n    r: 16  # the rank\n  name: a b\n  warm: true\n"),
            "x.toml:3:1: error: this is YAML, but a pipeline is written in TOML\n"
            "    3 | models:\n      | ^^^^^^^ a key of YAML\n"
            "      = in TOML [table] begins a table, key = value stands in it, and text has quotes; pipelines/ has examples\n"
            "      = help: write it in TOML, where it begins with\n"
            "          [models.lora]\n          r = 16\n          [models]\n          name = \"a b\"\n          warm = true\n");
}

// Its keys in TOML would be unknown, too.
TEST(Errors, YamlOfAnotherSystemIsNotShownInToml) {
  const std::string text = problems_of("base_model: Qwen/Qwen2.5\nlora_r: 16\n");
  EXPECT_THAT(text, HasSubstr("help: begin with a copy of one of pipelines/"));
  EXPECT_THAT(text, testing::Not(HasSubstr("lora_r = 16")));
}

TEST(Errors, YamlThatBeginsWithAListIsRecognised) {
  for (const char* text : {"- a: 1\n- b: 2\n", "---\n# a list\n- a\n", "- [1, 2]\n"})
    EXPECT_THAT(problems_of(text), HasSubstr(": error: this is YAML, but a pipeline is written in TOML")) << text;
}

TEST(Errors, ValuesOfYamlAreShownAsTomlHasThem) {
  const std::string text = problems_of("nodes:\n a: 1e-6\n b: \"x\"\n c: [q_proj, 2]\n d: Qwen/Qwen2.5\n");
  EXPECT_THAT(text, HasSubstr("a = 1e-6\n          b = \"x\"\n          c = [\"q_proj\", 2]\n          d = \"Qwen/Qwen2.5\""));
}

TEST(Errors, OnlyAFileThatBeginsLikeYamlIsTakenForIt) {
  for (const char* text : {"[pipeline]\nname: \"x\"\n", "a = 1\nb: 2\n", "a = x: y\n", "- = 1\nb: 2\n", "name\n", ":\n", "a:b\n"})
    EXPECT_THAT(problems_of(text), testing::Not(HasSubstr("YAML"))) << text;
}

TEST(Errors, ArraysThatNestTooDeeplyAreRefused) {
  const std::string deep = "[pipeline]\nx = " + std::string(100000, '[');
  EXPECT_THAT(problems_of(deep), HasSubstr("x.toml:2:37: error: values nest too deeply"));
}

// What looks at each character anew for each character after it would need hours.
TEST(Errors, ALineOfMillionsOfCharactersIsRefusedLikeAShortOne) {
  const std::string long_line = "x = " + std::string(5'000'000, '[') + "\n";
  EXPECT_THAT(problems_of(long_line), HasSubstr("x.toml:1:37: error: values nest too deeply"));
}

TEST(Errors, DottedKeysThatNestTooDeeplyAreRefused) {
  std::string bare = "a", quoted = "\"\\\"\"";
  for (int i = 0; i < 100000; ++i) bare += " . a", quoted += ".\"\\\"\"";
  EXPECT_THAT(problems_of(bare + " = 1\n"), HasSubstr("a key has too many parts"));
  EXPECT_THAT(problems_of("[" + bare + "]\n"), HasSubstr("a key has too many parts"));
  EXPECT_THAT(problems_of("x = { " + quoted + " = 1 }\n"), HasSubstr("a key has too many parts"));
}

TEST(Errors, DotsInTextAndNumbersAreNotDottedKeys) {
  std::string text = "# ";
  for (int i = 0; i < 100; ++i) text += "......... A sentence. Another one with words. ";
  text += "\n[pipeline]\nx = [";
  for (int i = 0; i < 100; ++i) text += "1.5, ";
  EXPECT_EQ(problems_of(text + "]\n"), "");
}

TEST(Errors, AByteOrderMarkAndWindowsLineBreaksDoNotShiftPlaces) {
  EXPECT_EQ(problems_of("\xEF\xBB\xBF[buget]\r\nx = 1\r\n"),
            "x.toml:1:2: error: unknown table [buget]\n    1 | [buget]\n      |  ^^^^^ did you mean [budget]?\n");
}

TEST(Errors, ASecondByteOrderMarkIsRefused) {
  EXPECT_THAT(problems_of("\xEF\xBB\xBF\xEF\xBB\xBF[pipeline]\nx = 1\n"),
              HasSubstr("x.toml:1:1: error: a byte order mark in the text"));
}

TEST(Errors, InfinityIsLeftToTheRangeChecks) { EXPECT_EQ(problems_of("[pipeline]\nx = inf\ny = nan\n"), ""); }

}  // namespace
}  // namespace sluice::dsl::errors_test
