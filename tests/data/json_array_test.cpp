#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "data/jsonl_reader.h"
#include "data/row_meter.h"
#include "tests/data/data_files.h"
#include "tests/temporary_folder.h"

namespace sluice::data::json_array_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A file that is one JSON array of rows.
class JsonArrayTest : public testing::Test {
 protected:
  JsonlReader open(const std::string& content, size_t most_rows = kAllRows) {
    return JsonlReader({folder_.write("data.json", content)}, {{"prompt", "prompt_field"}}, folder_.path(), most_rows);
  }

  std::string error(const std::string& content) {
    return message_of<UserError>([&] { open(content); });
  }

  std::vector<std::string> prompts(const std::string& content, size_t most_rows = kAllRows) {
    const JsonlReader reader = open(content, most_rows);
    std::vector<std::string> texts;
    for (size_t row = 0; row < reader.rows(); ++row) texts.push_back(reader.texts(row)[0]);
    return texts;
  }

  TemporaryFolder folder_;
};

// Texts that look like the ends of elements, nested values, and every way to write the array.
TEST_F(JsonArrayTest, EveryElementOfRandomArraysIsWhatJsonSaysItIs) {
  const std::vector<std::string> pieces{"]", "}", ",", "{", "[", "\"", "\\", "a", "\u4f60", "\n"};
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Json array = Json::array();
    std::vector<std::string> expected;
    for (size_t row = 1 + random() % 20; row > 0; --row) {
      std::string text;
      for (size_t length = random() % 30; length > 0; --length) text += pieces[random() % pieces.size()];
      expected.push_back(text);
      array.push_back({{"other", {text, {{"x", {1, 2}}}}}, {"prompt", text}});
    }
    const std::string content = (random() % 4 == 0 ? "\xEF\xBB\xBF \n" : "") + array.dump(static_cast<int>(random() % 4) - 1);
    EXPECT_EQ(prompts(content), expected) << content;
    EXPECT_EQ(prompts(gzip(content)), expected) << content;
  }
}

TEST_F(JsonArrayTest, AProblemIsShownAtItsLineAndColumn) {
  const std::string text = error("[\n  {\"prompt\": \"a\"},\n  {\"prompt\":\n     [1]}, {\"promt\": \"b\"}\n]\n");
  EXPECT_THAT(text, HasSubstr("data.json:3:3: error: field \"prompt\" must be a string or a number"));
  EXPECT_THAT(text, HasSubstr("data.json:4:12: error: no field \"prompt\""));
  EXPECT_THAT(text, HasSubstr("prompt_field = \"promt\"?"));
}

TEST_F(JsonArrayTest, ASyntaxErrorIsShownWhereItIsAndEndsTheReading) {
  const std::string text = error("[{\"prompt\": \"a\"},\n {\"prompt\":\n   oops},\n {\"prompt\": \"b\"}, 1]");
  EXPECT_THAT(text, HasSubstr("data.json:3:4: error: this element is not a JSON object"));
  EXPECT_THAT(text, HasSubstr("3 |    oops},"));
  EXPECT_THAT(text, Not(HasSubstr("each element")));
}

TEST_F(JsonArrayTest, AnArrayOfSomethingElseIsRefused) {
  EXPECT_THAT(error("[1, 2]"), HasSubstr("data.json:1:2: error: each element must be a JSON object"));
  EXPECT_THAT(error("[{\"prompt\": \"a\"},]"), HasSubstr("data.json:1:18: error: this element is not a JSON object"));
}

TEST_F(JsonArrayTest, AnArrayThatIsCutOffOrFollowedBySomethingIsRefused) {
  EXPECT_THAT(error("[{\"prompt\": \"a\"},\n{\"prompt\": \"b\"}\n"), HasSubstr("data.json:2:1: error: the array is cut off"));
  EXPECT_THAT(error("[{\"prompt\": \"a\"}]\n{}"), HasSubstr("data.json:2:1: error: something follows the array of rows"));
  EXPECT_THAT(error("["), HasSubstr("the array is cut off"));
}

TEST_F(JsonArrayTest, AnEmptyArrayHoldsNoRows) { EXPECT_THAT(error(" [ ]\n"), HasSubstr("data.json holds no rows")); }

TEST_F(JsonArrayTest, OnlyTheFirstRowsAreReadWhereThatIsWanted) {
  EXPECT_THAT(prompts("[{\"prompt\": \"a\"}, {\"prompt\": \"b\"}, oops", 2), ElementsAre("a", "b"));
  EXPECT_THAT(prompts("\n{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\"}\noops\n", 2), ElementsAre("a", "b"));
  const std::string rest(1 << 20, 'x');
  EXPECT_THAT(prompts(gzip("{\"prompt\": \"a\"}\n" + rest), 1), ElementsAre("a"));
  EXPECT_THAT(prompts(gzip("[{\"prompt\": \"a\"}, " + rest), 1), ElementsAre("a"));
}

TEST_F(JsonArrayTest, AnElementOfMoreThan64MiBIsRefused) {
  EXPECT_THAT(error("[{\"prompt\": \"a\"},\n" + std::string(65 << 20, '1') + "]"),
              HasSubstr("data.json:2: an element of more than 64 MiB"));
  EXPECT_THAT(error(gzip("[" + std::string(65 << 20, '1') + "]", 1)), HasSubstr("data.json:1: an element of more than 64 MiB"));
}

TEST(RowMeter, MeasuresElementsAndLinesAlike) {
  RowMeter array, lines;
  for (const char* piece : {"[{\"a\"", ": \"],}\"}", ", {}]\n"}) array.add(piece);
  EXPECT_EQ(array.rows(), 2u);
  EXPECT_EQ(array.longest(), std::string("{\"a\": \"],}\"}").size());
  for (const char* piece : {" \n{}", "  \n", "\n{"}) lines.add(piece);
  EXPECT_EQ(lines.rows(), 1u);
  EXPECT_EQ(lines.longest(), 4u);
  EXPECT_EQ(lines.line(), 4);
}

}  // namespace
}  // namespace sluice::data::json_array_test
