#include "nodes/sources/prompt_reader.h"

#include <gmock/gmock.h>

namespace sluice::nodes::prompt_reader_test {
namespace {

using ::testing::ElementsAre;

// The prompt of a row as JSON.
std::string prompt(const PromptFormat& format, const Json& row) {
  const PromptReader reader(format);
  std::vector<Json> values;
  for (const data::JsonlField& field : reader.fields()) values.push_back(row.at(field.name));
  return reader.read(values).dump();
}

const Json kRow = Json::parse(R"({"q": "6*7", "hint": "", "more": "x", "id": 3, "s": "Be brief.", "none": null,
    "m": [{"role": "user", "content": "hi"}], "own": [{"role": "system", "content": "mine"}, {"role": "user", "content": "hi"}]})");

TEST(PromptReader, ATextStaysAsItIs) {
  EXPECT_EQ(prompt({.prompt_field = "q", .prefix = "Q: ", .suffix = "="}, kRow), R"("Q: 6*7=")");
}

TEST(PromptReader, FieldsAreJoinedWithoutThoseThatAreEmpty) {
  EXPECT_EQ(prompt({.prompt_fields = {"q", "more"}}, kRow), R"("6*7\n\nx")");
  EXPECT_EQ(prompt({.prompt_fields = {"q", "hint", "none", "id"}}, kRow), R"("6*7\n\n3")");
}

TEST(PromptReader, ATemplateSaysWhereFieldsStand) {
  EXPECT_EQ(prompt({.prompt_template = "{id}. {q} [{hint}]"}, kRow), R"("3. 6*7 []")");
  EXPECT_EQ(prompt({.prompt_fields = {"q", "id"}, .prompt_template = "{id}{q}"}, kRow), R"("36*7")");
}

TEST(PromptReader, WithChatTheTextIsTheUsersTurn) {
  EXPECT_EQ(prompt({.prompt_field = "q", .chat = true, .suffix = "="}, kRow), R"([{"role":"user","content":"6*7="}])");
  EXPECT_EQ(prompt({.prompt_field = "q", .chat = false}, kRow), R"("6*7")");
}

TEST(PromptReader, ASystemMessageGoesBeforeConversationsWithoutOne) {
  EXPECT_EQ(prompt({.prompt_field = "q", .chat = true, .system = "Think."}, kRow),
            R"([{"role":"system","content":"Think."},{"role":"user","content":"6*7"}])");
  EXPECT_EQ(prompt({.messages_field = "m", .system_field = "s"}, kRow),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  EXPECT_EQ(prompt({.messages_field = "m", .system_field = "none"}, kRow), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(prompt({.messages_field = "own", .system = "Think."}, kRow), kRow["own"].dump());
}

TEST(PromptReader, NoPromptIsLongerThanThePlanIsTold) {
  const Json row = {{"a", std::string(50, '\x01')}, {"b", std::string(40, '"')}};
  const auto bytes = static_cast<int64_t>(row.dump().size());
  for (const PromptFormat& format : {PromptFormat{.prompt_fields = {"a", "b"}, .prefix = "<", .suffix = ">"},
                                     PromptFormat{.prompt_template = "{a}-{b}-{a}-{a}"}}) {
    EXPECT_LE(Json::parse(prompt(format, row)).get<std::string>().size(), static_cast<size_t>(most_prompt_bytes(format, bytes)));
    PromptFormat chat = format;
    chat.chat = true, chat.system = std::string(30, '\x02');
    EXPECT_LE(prompt(chat, row).size(), static_cast<size_t>(most_messages_bytes(chat, bytes)));
  }
}

struct Keys {
  std::string prompt_field = "prompt";
  std::vector<std::string> prompt_fields;
  std::string prompt_template;
  std::optional<bool> chat;
  std::string system, system_field, chat_variables, messages_field;
};

// What the checks say of a table, one message a line.
std::vector<std::string> messages_about(const Keys& keys, const std::vector<std::string>& written) {
  engine::Table table;
  for (const std::string& key : written) table.entries.push_back({.key = key});
  Problems problems;
  engine::Findings findings(table, problems, [](std::string_view) { return true; });
  check_prompt(prompt_format(keys), findings);
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(problem.message + (problem.help.empty() ? "" : ": " + problem.help));
  return messages;
}

TEST(PromptReader, KeysThatContradictEachOtherAreReported) {
  EXPECT_THAT(messages_about({.chat = true, .messages_field = "m"}, {"chat", "messages_field"}),
              ElementsAre("chat has no effect beside messages_field: remove one of the two"));
  EXPECT_THAT(messages_about({.system = "a"}, {"system"}),
              ElementsAre("system has no effect where prompts are sent as they are: chat = true, or remove it"));
  EXPECT_THAT(messages_about({.chat = true, .system = "a", .system_field = "b"}, {"chat"}),
              ElementsAre("there is one system message, but system and system_field name two: remove one of the two"));
  EXPECT_THAT(messages_about({.prompt_fields = {"question", "hint"}, .prompt_template = "{qestion} {hint}"}, {}),
              ElementsAre("prompt_template names {qestion}, which prompt_fields does not have: did you mean {question}?",
                          "prompt_fields has \"question\", which prompt_template does not name: write {question} into it, or "
                          "remove the field"));
  EXPECT_THAT(messages_about({.prompt_template = "Solve it."}, {}),
              ElementsAre("prompt_template names no field: all prompts would be alike: write one as {question}"));
  EXPECT_THAT(messages_about({.prompt_template = "{a"}, {}),
              ElementsAre("prompt_template has a { without its }: {name} is a field of the row; {{ and }} are braces"));
}

}  // namespace
}  // namespace sluice::nodes::prompt_reader_test
