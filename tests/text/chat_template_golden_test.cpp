// Whole conversations against the texts of transformers' apply_chat_template (tests/oracles/chat_template_reference.py).
#include <gtest/gtest.h>

#include <map>

#include "tests/text/chat_template_fixtures.h"

namespace sluice::text::chat_template_golden_test {
namespace {

class Golden : public testing::Test {
 protected:
  const Json inputs = read_json(golden_chat_folder() / "inputs.json");

  const Json& messages_of(const Json& expected) const {
    return inputs.at("conversations").at(expected.at("conversation").get<std::string>());
  }

  ChatOptions options_of(const Json& expected) const {
    ChatOptions options;
    options.now = golden_time();
    if (!expected.contains("options")) return options;
    for (const auto& [key, value] : inputs.at("options").at(expected.at("options").get<std::string>()).items()) {
      if (key == "add_generation_prompt")
        options.add_generation_prompt = value.get<bool>();
      else if (key == "tools")
        options.tools = value;
      else if (key == "documents")
        options.documents = value;
      else
        options.variables[key] = value;
    }
    return options;
  }

  ChatTemplate chat(const std::string& source) const {
    return ChatTemplate(source, "chat_template", inputs.at("special_tokens"));
  }

  static std::string own_template(const std::string& name) {
    return read_file(golden_chat_folder() / "templates" / (name + ".jinja"));
  }

  // The text, or that there is none.
  static std::string text_or_error(const ChatTemplate& chat, const Json& messages, const ChatOptions& options) {
    try {
      return chat.render(messages, options);
    } catch (const UserError&) {
      return "(refused)";
    }
  }

  static std::string expected_text(const Json& expected) {
    return expected.contains("error") ? "(refused)" : expected.at("text").get<std::string>();
  }
};

TEST_F(Golden, PublishedTemplatesGiveTheTextOfTransformers) {
  std::map<std::string, ChatTemplate> templates;
  const std::vector<Json> cases = golden_lines("shared.jsonl");
  ASSERT_GT(cases.size(), 200);
  for (const Json& expected : cases) {
    const std::string name = expected.at("template").get<std::string>();
    if (templates.count(name) == 0) {
      const auto source = published_template(name);
      if (!source) GTEST_SKIP() << "the published templates are not installed";
      templates.emplace(name, chat(*source));
    }
    EXPECT_EQ(text_or_error(templates.at(name), messages_of(expected), options_of(expected)), expected_text(expected))
        << name << expected.dump();
  }
}

TEST_F(Golden, TemplatesOfOtherFamiliesGiveTheTextOfTransformers) {
  const std::vector<Json> cases = golden_lines("own.jsonl");
  ASSERT_GT(cases.size(), 500);
  for (const Json& expected : cases) {
    const ChatTemplate own = chat(own_template(expected.at("template").get<std::string>()));
    EXPECT_EQ(text_or_error(own, messages_of(expected), options_of(expected)), expected_text(expected)) << expected.dump();
  }
}

TEST_F(Golden, GenerationBlocksCoverTheBytesThatTransformersMasks) {
  int masks = 0;
  for (const Json& expected : golden_lines("own.jsonl")) {
    if (!expected.contains("assistant")) continue;
    const MaskedChat masked = chat(own_template(expected.at("template").get<std::string>()))
                                  .render_with_mask(messages_of(expected), options_of(expected));
    EXPECT_EQ(masked.text, expected.at("text").get<std::string>());
    EXPECT_EQ(Json(masked.assistant).dump(), expected.at("assistant").dump()) << expected.dump();
    ++masks;
  }
  EXPECT_GT(masks, 20);
}

TEST_F(Golden, ContinuedFinalMessagesEndWhereTransformersEndsThem) {
  for (const Json& expected : golden_lines("continued.jsonl")) {
    ChatOptions options = options_of(expected);
    options.continue_final_message = expected.at("continue").get<std::string>();
    const ChatTemplate own = chat(own_template(expected.at("template").get<std::string>()));
    EXPECT_EQ(text_or_error(own, messages_of(expected), options), expected_text(expected)) << expected.dump();
  }
}

}  // namespace
}  // namespace sluice::text::chat_template_golden_test
