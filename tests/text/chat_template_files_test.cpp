// Where a model folder keeps its template and its special tokens, and what is said when they are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/text/chat_template_fixtures.h"

namespace sluice::text::chat_template_files_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Json kUser = Json::array({{{"role", "user"}, {"content", "Hi"}}});

class ChatTemplateFiles : public testing::Test {
 protected:
  TemporaryFolder folder;

  std::string rendered(const ChatOptions& options = {}) const { return ChatTemplate::load(folder.path()).render(kUser, options); }
  std::string load_error() const {
    return error_of([&] { ChatTemplate::load(folder.path()); });
  }
};

TEST_F(ChatTemplateFiles, JinjaFileComesFirst) {
  folder.write("chat_template.jinja", "from file\n");
  folder.write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(rendered(), "from file");
}

TEST_F(ChatTemplateFiles, ConfigHoldsOneTemplate) {
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ messages[0].content }}{{ eos_token }}", "eos_token": "</s>"})");
  folder.write("chat_template.json", R"({"chat_template": "older"})");
  EXPECT_EQ(rendered(), "Hi</s>");
}

TEST_F(ChatTemplateFiles, ProcessorFileIsTheLastChoice) {
  folder.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  folder.write("chat_template.json", R"({"chat_template": "processor{{ eos_token }}"})");
  EXPECT_EQ(rendered(), "processor</s>");
}

TEST_F(ChatTemplateFiles, AFolderSaysWhetherItHasATemplate) {
  EXPECT_FALSE(ChatTemplate::is_in(folder.path()));
  folder.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_FALSE(ChatTemplate::is_in(folder.path()));
  folder.write("chat_template.json", R"({"chat_template": "processor"})");
  EXPECT_TRUE(ChatTemplate::is_in(folder.path()));
  EXPECT_FALSE(ChatTemplate::is_in(folder.path() / "none"));
}

TEST_F(ChatTemplateFiles, ToolsChooseTheTemplateForThem) {
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(rendered(), "plain");
  EXPECT_EQ(rendered({.tools = Json::array()}), "tools");
}

TEST_F(ChatTemplateFiles, AdditionalFilesAreNamedTemplates) {
  folder.write("chat_template.jinja", "plain");
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  folder.write("additional_chat_templates/tool_use.jinja", "tools");
  EXPECT_EQ(rendered({.tools = Json::array()}), "tools");
}

TEST_F(ChatTemplateFiles, WithoutADefaultTheNamesAreListed) {
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "a"}, {"name": "tool_use", "template": "b"}]})");
  EXPECT_THAT(error_of([&] { rendered(); }), AllOf(HasSubstr("rag, tool_use"), HasSubstr("\"default\"")));
}

TEST_F(ChatTemplateFiles, SpecialTokensAreTextsOrObjects) {
  folder.write("chat_template.jinja",
               "{{ bos_token }}{{ eos_token }}{{ image_token }}{{ pad_token is defined }}{{ add_bos_token is defined }}");
  folder.write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null, "add_bos_token": true, "image_token": "<image>"})");
  EXPECT_EQ(rendered(), "<s></s><image>FalseFalse");
}

TEST_F(ChatTemplateFiles, OlderMapOfSpecialTokensCountsOnlyWithoutADecoder) {
  folder.write("chat_template.jinja", "{{ eos_token }}");
  folder.write("special_tokens_map.json", R"({"eos_token": {"content": "<map>"}})");
  EXPECT_EQ(rendered(), "<map>");
  folder.write("tokenizer_config.json", R"({"eos_token": "<config>"})");
  EXPECT_EQ(rendered(), "<map>");
  folder.write("tokenizer_config.json", R"({"eos_token": "<config>", "added_tokens_decoder": {}})");
  EXPECT_EQ(rendered(), "<config>");
}

TEST_F(ChatTemplateFiles, VariablesOfTheCallerComeOverSpecialTokens) {
  folder.write("chat_template.jinja", "{{ eos_token }}{{ enable_thinking }}");
  folder.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(rendered({.variables = {{"eos_token", "<over>"}, {"enable_thinking", false}}}), "<over>False");
}

TEST_F(ChatTemplateFiles, AnotherFileTakesTheSpecialTokensOfTheFolder) {
  folder.write("tokenizer_config.json", R"({"eos_token": "</s>", "chat_template": "not this"})");
  folder.write("mine.jinja", "mine{{ eos_token }}");
  EXPECT_EQ(ChatTemplate::load(folder.path(), folder.path() / "mine.jinja").render(kUser), "mine</s>");
}

TEST_F(ChatTemplateFiles, FolderWithoutATemplateSaysWhereItWouldBe) {
  EXPECT_THAT(load_error(), AllOf(HasSubstr("has no chat template"), HasSubstr("put one there as chat_template.jinja"),
                                  HasSubstr("tokenizer_config.json")));
}

TEST_F(ChatTemplateFiles, MalformedKeysAreNamed) {
  folder.write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_THAT(load_error(), HasSubstr("tokenizer_config.json: chat_template: expected a text or a list"));
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default"}]})");
  EXPECT_THAT(load_error(), HasSubstr("template"));
  folder.write("tokenizer_config.json", R"({"chat_template": "x", "eos_token": 7})");
  EXPECT_THAT(load_error(), HasSubstr("eos_token: expected a text"));
  folder.write("tokenizer_config.json", R"([1])");
  EXPECT_NE(load_error(), "accepted");
}

TEST_F(ChatTemplateFiles, SyntaxErrorsNameFileAndLine) {
  folder.write("chat_template.jinja", "line\n{% if x %}\nmore");
  EXPECT_THAT(load_error(), AllOf(HasSubstr("chat_template.jinja:3"), HasSubstr("'endif' is missing for 'if' of line 2")));
  std::filesystem::remove(folder.path() / "chat_template.jinja");
  folder.write("tokenizer_config.json", R"({"chat_template": "a\n{{ 1 + }}"})");
  EXPECT_THAT(load_error(),
              AllOf(HasSubstr("tokenizer_config.json: chat_template:2"), HasSubstr("expected an expression, not '}}'")));
}

TEST_F(ChatTemplateFiles, ConversationsThatAreNoneAreRefused) {
  const ChatTemplate chat("{{ messages }}", "t");
  const auto refused = [&](const Json& messages, const ChatOptions& options = {}) {
    return error_of([&] { chat.render(messages, options); });
  };
  EXPECT_THAT(refused(Json::array()), HasSubstr("t: the conversation has no messages"));
  EXPECT_THAT(refused("text"), HasSubstr("messages must be an array of objects, not string"));
  EXPECT_THAT(refused(Json::array({kUser[0], 3})), HasSubstr("messages[1] must be an object, not number"));
  EXPECT_THAT(refused(kUser, {.tools = {1}}), HasSubstr("tools[0] must be an object"));
  EXPECT_THAT(refused(kUser, {.documents = "d"}), HasSubstr("documents must be an array"));
  EXPECT_THAT(refused(kUser, {.variables = Json::array()}), HasSubstr("variables of a template must be an object"));
}

}  // namespace
}  // namespace sluice::text::chat_template_files_test
