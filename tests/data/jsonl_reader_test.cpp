#include "data/jsonl_reader.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "tests/data/data_files.h"
#include "tests/temporary_folder.h"

namespace sluice::data::jsonl_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class JsonlReaderTest : public testing::Test {
 protected:
  JsonlReader open(const std::string& content, std::vector<JsonlField> fields = {{"prompt", "prompt_field"}}) {
    return JsonlReader({folder_.write("data.jsonl", content)}, std::move(fields), folder_.path());
  }

  std::string error(const std::string& content, std::vector<JsonlField> fields = {{"prompt", "prompt_field"}}) {
    return message_of<UserError>([&] { open(content, fields); });
  }

  std::vector<std::string> prompts(const std::string& content) {
    const JsonlReader reader = open(content);
    std::vector<std::string> texts;
    for (size_t row = 0; row < reader.rows(); ++row) texts.push_back(reader.texts(row)[0]);
    return texts;
  }

  TemporaryFolder folder_;
};

// Lines of any length with any text, between blank lines, with either line end.
struct RandomFile {
  explicit RandomFile(uint32_t seed) : random(seed) {
    if (chance(4)) content += "\xEF\xBB\xBF";
    const size_t rows = 1 + random() % 60;
    for (size_t row = 0; row < rows; ++row) {
      while (chance(5)) content += chance(2) ? "  \t" + line_end() : line_end();
      lines.push_back(chance(8) ? std::string(random() % 3, ' ') + line(random() % 40'000) : line(random() % 60));
      content += lines.back() + (row + 1 == rows && chance(2) ? "" : line_end());
    }
  }

  bool chance(uint32_t one_of) { return random() % one_of == 0; }
  std::string line_end() { return chance(2) ? "\r\n" : "\n"; }

  std::string line(size_t length) {
    static const std::vector<std::string> kPieces{
        "a", "\u00e9", "\u4f60", "\U0001F600", "\\n", "\\\"",    "\\\\", "\\u00e9", "\\ud83d\\ude00", "\\/", " ",
        "{", "}",      "[",      ",",          ":",   "\\u0000", "\x7f", "\\r",     "\u2028"};
    std::string text;
    while (text.size() < length) text += kPieces[random() % kPieces.size()];
    std::string other = chance(3) ? R"(, "other": [1, {"prompt": "inner", "x": [[], {}]}, null])" : "";
    return R"({"id": )" + std::to_string(random()) + R"(, "prompt": ")" + text + "\"" + other + "}";
  }

  std::mt19937 random;
  std::string content;
  std::vector<std::string> lines;
};

TEST_F(JsonlReaderTest, EveryRowOfRandomFilesIsWhatJsonSaysItIs) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomFile file(seed);
    std::vector<std::string> expected;
    for (const std::string& line : file.lines) expected.push_back(nlohmann::json::parse(line)["prompt"]);
    EXPECT_EQ(prompts(file.content), expected) << seed;
    const size_t cut = file.content.size() / 3;
    EXPECT_EQ(prompts(gzip(file.content.substr(0, cut)) + gzip(file.content.substr(cut))), expected) << seed;
  }
}

TEST_F(JsonlReaderTest, RowsOfSeveralFilesAreOneList) {
  const JsonlReader reader(
      {folder_.write("a", "{\"p\": 1}\n\n{\"p\": 2}"), folder_.write("b", ""), folder_.write("c", gzip("\n{\"p\": 3}\n"))},
      {{"p", "prompt_field"}}, folder_.path());
  ASSERT_EQ(reader.rows(), 3u);
  EXPECT_EQ(reader.texts(2)[0], "3");
  EXPECT_THAT(reader.where(2).source->name, HasSubstr("/c"));
  EXPECT_EQ(reader.where(2).line, 2);
  EXPECT_EQ(reader.where(1).line, 3);
}

TEST_F(JsonlReaderTest, ARowCanBeHadAsItsFileHasIt) {
  const JsonlReader lines = open("{\"a\": 1}\r\n\n {\"b\": 2}", {});
  EXPECT_EQ(lines.text_of(0), "{\"a\": 1}");
  EXPECT_EQ(Json::parse(lines.text_of(1)), Json({{"b", 2}}));
  EXPECT_EQ(open("[{\"a\": 1}, {\"b\": 2}]", {}).text_of(1), "{\"b\": 2}");
}

TEST_F(JsonlReaderTest, NumbersAreTheirJsonText) {
  EXPECT_THAT(prompts("{\"prompt\": 42}\n{\"prompt\": -0.5}\n{\"prompt\": 1e5}\n{\"prompt\": 123456789012345678901234567890}\n"),
              ElementsAre("42", "-0.5", "100000.0", "123456789012345678901234567890"));
}

TEST_F(JsonlReaderTest, AMemberThatIsWrittenTwiceIsRefused) {
  EXPECT_THAT(error("{\"prompt\": \"a\", \"x\": 1, \"prom\\u0070t\": \"b\"}\n"),
              HasSubstr("data.jsonl:1:1: error: this line has \"prompt\" twice"));
  EXPECT_THAT(error("{\"prompt\": \"a\", \"x\": 1, \"x\": 1}\n"), HasSubstr("this line has \"x\" twice"));
  EXPECT_THAT(error("{\"meta\": {\"answer\": 1, \"answer\": 2}}\n", {{"meta.answer", "label_field"}}),
              HasSubstr("this line has \"answer\" twice"));
}

TEST_F(JsonlReaderTest, ADotReachesIntoAnObject) {
  const std::vector<JsonlField> fields{{"meta.answer.value", "label_field"}};
  EXPECT_EQ(open("{\"meta\": {\"answer\": {\"value\": 7}}}\n", fields).texts(0)[0], "7");
  EXPECT_THAT(error("{\"meta\": {\"answer\": 7}}\n", fields), HasSubstr("no field \"meta.answer.value\""));
}

TEST_F(JsonlReaderTest, AFieldOfAnObjectIsSuggestedWithItsObject) {
  const std::string row = "{\"meta\": {\"style\": \"rule\", \"answer\": 7}}\n";
  EXPECT_THAT(error(row, {{"meta.anwser", "label_field"}}),
              AllOf(HasSubstr("fields of \"meta\": style, answer"), HasSubstr("help: label_field = \"meta.answer\"?")));
  EXPECT_THAT(error(row, {{"meta", "label_field"}}),
              HasSubstr("help: label_field = \"meta.style\" reads a field of it; it has: style, answer"));
}

TEST_F(JsonlReaderTest, AFieldOfSeveralIsSuggestedForItsPlaceAmongThem) {
  EXPECT_THAT(error("{\"input\": 7}\n", {{"inputs", "prompt_fields"}}), HasSubstr("help: \"input\" in prompt_fields?"));
}

TEST_F(JsonlReaderTest, AMemberWhoseNameHasADotComesFirst) {
  EXPECT_EQ(open("{\"a\": {\"b\": 1}, \"a.b\": 2}\n", {{"a.b", "label_field"}}).texts(0)[0], "2");
}

TEST_F(JsonlReaderTest, AnOptionalFieldMayBeMissingOrNull) {
  const std::vector<JsonlField> fields{{"label", "label_field", FieldKind::kText, false}};
  const JsonlReader reader = open("{}\n{\"label\": null}\n{\"label\": \"x\"}\n", fields);
  EXPECT_EQ(reader.texts(0)[0] + reader.texts(1)[0] + reader.texts(2)[0], "x");
}

TEST_F(JsonlReaderTest, ARequiredFieldMayBeNullWhereThatIsSaid) {
  const std::vector<JsonlField> fields{{.name = "system", .param = "system_field", .nullable = true}};
  EXPECT_EQ(open("{\"system\": null}\n", fields).texts(0)[0], "");
  EXPECT_THAT(error("{}\n", fields), HasSubstr("no field \"system\""));
}

TEST_F(JsonlReaderTest, AConversationWhereATextIsExpectedNamesTheParameterThatReadsIt) {
  const std::vector<JsonlField> fields{{.name = "prompt", .param = "prompt_field", .list_param = "messages_field"}};
  EXPECT_THAT(error("{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}]}\n", fields),
              HasSubstr("help: messages_field = \"prompt\" reads a list of messages"));
  EXPECT_THAT(error("{\"id\": 1, \"conversations\": []}\n", fields), HasSubstr("help: messages_field = \"conversations\"?"));
}

TEST_F(JsonlReaderTest, ConversationsOfShareGptGetRolesAndContents) {
  const std::string messages =
      R"([{"from":"system","value":"s"},{"from":"human","value":"1"},{"from":"gpt","value":"2","weight":0},{"role":"user","content":"3"}])";
  EXPECT_EQ(open("{\"m\": " + messages + "}\n", {{"m", "messages_field", FieldKind::kMessages}}).values(0)[0].dump(),
            R"([{"role":"system","content":"s"},{"role":"user","content":"1"},)"
            R"({"role":"assistant","content":"2","weight":0},{"role":"user","content":"3"}])");
}

TEST_F(JsonlReaderTest, AnUnknownSpeakerOfShareGptIsRefused) {
  const std::vector<JsonlField> fields{{"m", "messages_field", FieldKind::kMessages}};
  EXPECT_THAT(error("{\"m\": [{\"from\": \"alien\", \"value\": \"1\"}]}\n", fields),
              HasSubstr("message 1 is from \"alien\", which is none of human, gpt"));
  EXPECT_THAT(error("{\"m\": [{\"from\": \"human\", \"value\": 1}]}\n", fields),
              HasSubstr("message 1 has a value that is a number"));
}

TEST_F(JsonlReaderTest, MessagesKeepEverythingInItsOrder) {
  const std::string messages =
      R"([{"role":"user","content":"hi","name":"x"},{"role":"assistant","content":null,"tool_calls":[{"b":1,"a":2.5}]}])";
  EXPECT_EQ(open("{\"m\": " + messages + "}\n", {{"m", "messages_field", FieldKind::kMessages}}).values(0)[0].dump(), messages);
}

TEST_F(JsonlReaderTest, WhatIsNoConversationIsRefusedByItsMessage) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\"hi\"", "it is a string, not a list of messages"},
      {"[]", "the list of messages is empty"},
      {R"([{"role": "user", "content": "a"}, "b"])", "message 2 is a string, not an object with role and content"},
      {R"([{"content": "a"}])", "message 1 has no role"},
      {R"([{"role": 1, "content": "a"}])", "message 1 has a role that is a number, not a string"},
      {R"([{"role": "user", "content": 1}])", "message 1 has a content that is a number, not a string"}};
  for (const auto& [messages, text] : cases) {
    const std::string said = error("{\"m\": " + messages + "}\n", {{"m", "messages_field", FieldKind::kMessages}});
    EXPECT_THAT(said, HasSubstr("data.jsonl:1:1: error: field \"m\" must be a list of messages"));
    EXPECT_THAT(said, HasSubstr(text));
  }
}

TEST_F(JsonlReaderTest, TwentyBrokenLinesAreShownAndNoMore) {
  std::string content;
  for (int i = 0; i < 50; ++i) content += "{\"prompt\": \"a\"}\n{\"prompt\": x}\n";
  const std::string text = error(content);
  EXPECT_THAT(text, HasSubstr("data.jsonl:2:12: error: this line is not a JSON object"));
  EXPECT_THAT(text, HasSubstr("data.jsonl:40:12: error"));
  EXPECT_THAT(text, Not(HasSubstr("data.jsonl:42:")));
  EXPECT_THAT(text, HasSubstr("reading stopped here: 20 broken lines"));
}

TEST_F(JsonlReaderTest, AProblemFarInALongLineShowsItsNeighbourhoodAndItsColumn) {
  const std::string text = error("{}\n{\"prompt\": \"" + std::string(100'000, 'x') + "\u00e9\", \"a\": oops}\n", {});
  EXPECT_THAT(text, HasSubstr("data.jsonl:2:100022: error: this line is not a JSON object"));
  EXPECT_THAT(text, HasSubstr("\u00e9\", \"a\": oops}"));
  EXPECT_LT(text.size(), 1000u);
}

TEST_F(JsonlReaderTest, ABrokenLineFarInAFileIsStillShown) {
  const std::string text = error(std::string(3'000'000, '\n') + "{\"prompt\": 1} x\n");
  EXPECT_THAT(text, HasSubstr("data.jsonl:3000001:15: error"));
  EXPECT_THAT(text, HasSubstr("{\"prompt\": 1} x"));
}

// What a hostile line may do: end with a message, quickly and without taking memory.
TEST_F(JsonlReaderTest, HostileLinesAreRefusedOrHarmless) {
  const std::string deep = "{\"prompt\": \"a\", \"x\": " + std::string(100'000, '[');
  EXPECT_THAT(error(deep + "\n"), HasSubstr("this line nests deeper than 512 levels"));
  EXPECT_THAT(error("{\"prompt\": " + std::string(100'000, '[') + "\n"), HasSubstr("512 levels"));
  EXPECT_THAT(error("{\"prompt\": 1e999}\n"), HasSubstr("this number is too large for a double"));
  EXPECT_THAT(error("{\"prompt\": \"\xff\xfe\"}\n"), HasSubstr("invalid string"));
  EXPECT_THAT(error("{\"prompt\": \"\xed\xa0\x80\"}\n"), HasSubstr("invalid string"));
  EXPECT_THAT(error("{\"prompt\": \"\\ud800\"}\n"), HasSubstr("invalid string"));
  EXPECT_THAT(error(std::string("{\"prompt\": \"a\0b\"}\n", 18)), HasSubstr("invalid string"));
  EXPECT_THAT(error(std::string(1000, '\0')), HasSubstr("this line is not a JSON object"));
  EXPECT_THAT(error("{\"prompt\": " + std::string(300'000, '9') + "}\n"), HasSubstr("this number is too large for a double"));
}

TEST_F(JsonlReaderTest, ManyMembersThatNobodyAsksForAreHarmless) {
  std::string members = "\"k\": {}";
  for (int i = 0; i < 300'000; ++i) members += ", \"k" + std::to_string(i) + "\": {}";
  EXPECT_EQ(open("{\"prompt\": \"a\", \"x\": {" + members + "}}\n").texts(0)[0], "a");
  EXPECT_THAT(error("{\"prompt\": \"a\", " + members + "}\n"), HasSubstr("this line has more than 10,000 members"));
}

TEST_F(JsonlReaderTest, ManyValuesOfAFieldThatIsReadAreRefused) {
  std::string list = "[0", object = "{\"k\": 0";
  for (int i = 0; i < 300'000; ++i) list += ",0", object += ", \"k" + std::to_string(i) + "\": 0";
  const std::vector<JsonlField> fields{{"m", "messages_field", FieldKind::kMessages}};
  EXPECT_THAT(error("{\"m\": " + list + "]}\n", fields), HasSubstr("more than 200,000 values in the fields that are read"));
  EXPECT_THAT(error("{\"m\": " + object + "}}\n", fields), HasSubstr("an object has more than 1,000 members"));
}

TEST_F(JsonlReaderTest, APlainLineOfMoreThan64MiBIsRefused) {
  const std::string good = "{\"prompt\": \"a\"}\n";
  EXPECT_THAT(error(good + std::string((64 << 20) + 1, ' ')), HasSubstr("data.jsonl:2: a line of more than 64 MiB"));
}

TEST_F(JsonlReaderTest, FilesWithoutRowsAreRefused) {
  EXPECT_THAT(error(""), HasSubstr("data.jsonl holds no rows"));
  EXPECT_THAT(error("\xEF\xBB\xBF\r\n \n"), HasSubstr("data.jsonl holds no rows"));
  EXPECT_THAT(error(gzip("")), HasSubstr("data.jsonl holds no rows"));
}

// Three rows and who changes their file while it is open.
class ChangedFileTest : public JsonlReaderTest {
 protected:
  ChangedFileTest() : reader_(open(row("a") + row("b") + row("c"))) {}

  static std::string row(const std::string& prompt) { return "{\"prompt\": \"" + prompt + "\"}\n"; }

  std::string error_of_row(size_t row) {
    return message_of<UserError>([&] { reader_.values(row); });
  }

  const std::filesystem::path path_ = folder_.path() / "data.jsonl";
  const JsonlReader reader_;
};

TEST_F(ChangedFileTest, ARowThatWasCutOffIsAnErrorAndThoseBeforeItAreThere) {
  std::filesystem::resize_file(path_, 20);
  EXPECT_EQ(reader_.texts(0)[0], "a");
  EXPECT_THAT(error_of_row(2),
              HasSubstr("data.jsonl has been cut short while it is being read: 20 bytes, 48 when it was opened"));
  std::filesystem::resize_file(path_, 0);
  EXPECT_THAT(error_of_row(0), HasSubstr("0 bytes, 48 when it was opened"));
}

TEST_F(ChangedFileTest, ARowThatWasWrittenOverIsAnErrorAndTheOthersAreThere) {
  folder_.write("data.jsonl", row("a") + row("x") + row("c"));
  EXPECT_EQ(reader_.texts(0)[0] + reader_.texts(2)[0], "ac");
  EXPECT_THAT(error_of_row(1),
              HasSubstr("data.jsonl has changed while it is being read: what was line 2 when it was opened is another text now"));
  EXPECT_THAT(error_of_row(1), HasSubstr("help: bring it back as it was; a new file that takes its place (mv) does no harm"));
}

TEST_F(ChangedFileTest, RowsThatMovedAreAnError) {
  folder_.write("data.jsonl", row("new") + row("a") + row("b") + row("c"));
  for (size_t row = 0; row < 3; ++row) EXPECT_THAT(error_of_row(row), HasSubstr("data.jsonl has changed while it is being read"));
}

TEST_F(ChangedFileTest, WhatLeavesTheRowsAsTheyWereDoesNoHarm) {
  const auto rows = [this] { return reader_.texts(0)[0] + reader_.texts(1)[0] + reader_.texts(2)[0]; };
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));  // touch
  EXPECT_EQ(rows(), "abc");
  folder_.write("data.jsonl", row("a") + row("b") + row("c") + row("d"));
  EXPECT_EQ(rows(), "abc");
  std::filesystem::rename(folder_.write("other", row("x")), path_);
  EXPECT_EQ(rows(), "abc");
}

// Lines and elements longer than what is read at once, and such that end with it.
TEST_F(JsonlReaderTest, RowsOfAnyLengthAreWhole) {
  std::vector<std::string> expected;
  std::string lines, array;
  for (const size_t length :
       {size_t{1}, (size_t{1} << 20) - 17, (size_t{3} << 20) + 5, size_t{700'000}, size_t{700'000}, size_t{2}}) {
    expected.push_back(std::string(length, static_cast<char>('a' + expected.size())));
    const std::string row = Json({{"prompt", expected.back()}}).dump();
    lines += row + "\n";
    array += (array.empty() ? "[" : ",\n ") + row;
  }
  EXPECT_EQ(prompts(lines), expected);
  EXPECT_EQ(prompts(array + "]" + std::string(size_t{2} << 20, '\n')), expected);
  EXPECT_EQ(prompts(std::string(size_t{2} << 20, '\n') + array + "]"), expected);
  EXPECT_THAT(error(array + "]" + std::string(size_t{2} << 20, '\n') + "x"),
              HasSubstr("data.jsonl:2097158:1: error: something follows"));
}

TEST_F(JsonlReaderTest, AFlagIsTrueOrFalseOrOneOrZero) {
  const std::vector<JsonlField> fields{{"label", "label_field", FieldKind::kFlag}};
  const JsonlReader reader =
      open("{\"label\": true}\n{\"label\": false}\n{\"label\": 1}\n{\"label\": 0}\n{\"label\": 1.0}\n", fields);
  EXPECT_EQ(reader.values(0)[0], true);
  EXPECT_EQ(reader.values(3)[0], 0);
  EXPECT_EQ(reader.values(4)[0], 1);
  for (const char* other : {"\"true\"", "2", "0.5", "null", "[]"})
    EXPECT_THAT(error("{\"label\": " + std::string(other) + "}\n", fields), HasSubstr("must be true or false")) << other;
  EXPECT_THAT(error("{\"labels\": true, \"text\": \"a\"}\n", fields), HasSubstr("label_field = \"labels\"?"));
}

}  // namespace
}  // namespace sluice::data::jsonl_reader_test
