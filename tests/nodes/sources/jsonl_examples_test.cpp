#include "nodes/sources/jsonl_examples.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::jsonl_examples_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

// The tokenizer of the tiny model has one id a character: '0' is 17, 'a' is 66, a space 1, the end of sequence 0.
class JsonlExamplesTest : public ::testing::Test {
 protected:
  void SetUp() override { resources_.models["actor"] = testing::tiny_model(folder_.path(), {}); }

  JsonlExamples open(const std::string& text, JsonlExamplesParams params = {}) {
    params.path = {folder_.path() / "data.jsonl"};
    params.model = "actor";
    params.shuffle = false;
    if (params.max_tokens == 0) params.max_tokens = 8;
    write_file_atomically(params.path.front(), text);
    return JsonlExamples(params, resources_);
  }

  std::string error(const std::string& text, JsonlExamplesParams params = {}) {
    try {
      open(text, std::move(params));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  static std::vector<int64_t> tokens(const engine::Group& group) {
    const auto entries = group.read(columns::kTokens);
    return {entries.begin(), entries.end()};
  }

  testing::TinyFolder folder_;
  engine::NodeResources resources_;
};

TEST_F(JsonlExamplesTest, ActionsAreTheCompletionAndTheEndOfSequence) {
  JsonlExamples source = open("{\"prompt\": \"1 0\", \"completion\": \"ab\"}\n");
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_THAT(tokens(group), ElementsAre(18, 1, 17, 66, 67, 0));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(3, 4, 5));
  EXPECT_EQ(group.layout.groups(), 1u);
  EXPECT_EQ(group.read(columns::kPrompt)[0], "1 0");
}

TEST_F(JsonlExamplesTest, EndOfSequenceCanBeLeftOut) {
  JsonlExamples source = open("{\"prompt\": \"1\", \"completion\": \"a\"}\n", {.add_end_of_sequence = false});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_THAT(tokens(group), ElementsAre(18, 66));
}

TEST_F(JsonlExamplesTest, DataEndsAfterTheLastEpoch) {
  JsonlExamples source = open("{\"prompt\": \"1\", \"completion\": \"a\"}\n", {.epochs = 2});
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    engine::Group group;
    group.iteration = iteration;
    EXPECT_EQ(source.next_group(group), iteration < 2);
  }
}

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<eos>{% endgeneration %}"
    "{% else %}{{ m.content }};{% endif %}{% endfor %}";

TEST_F(JsonlExamplesTest, OfAConversationTheAssistantsWordsAreLearned) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  JsonlExamples source = open(R"({"m": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "ab"},)"
                              R"( {"role": "user", "content": "2"}, {"role": "assistant", "content": ""}]})"
                              "\n",
                              {.messages_field = "m", .max_tokens = 32});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  // u:1;a:ab<eos>u:2;a:<eos>
  const int64_t u = 'u' - 31, a = 'a' - 31, b = 'b' - 31, colon = ':' - 31, semicolon = ';' - 31;
  EXPECT_THAT(tokens(group), ElementsAre(u, colon, 18, semicolon, a, colon, a, b, 0, u, colon, 19, semicolon, a, colon, 0));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(6, 7, 8, 15));
  EXPECT_THAT(group.layout.action_offsets, ElementsAre(0, 4));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "u:1;a:");
}

TEST_F(JsonlExamplesTest, WithChatPromptAndCompletionAreTurns) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  JsonlExamples source = open("{\"prompt\": \"1\", \"completion\": \"ab\"}\n", {.chat = true, .system = "2", .max_tokens = 32});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "s:2;u:1;a:");
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(10, 11, 12));  // a, b and the end of sequence
}

TEST_F(JsonlExamplesTest, PromptAndCompletionMayBothBeConversations) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  JsonlExamples source = open(R"({"prompt": [{"role": "user", "content": "1"}], "completion": [{"from": "gpt", "value": "ab"}]})"
                              "\n",
                              {.max_tokens = 32});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "u:1;a:");
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(6, 7, 8));
  EXPECT_THAT(error(R"({"prompt": "1", "completion": [{"role": "assistant", "content": "ab"}]})"
                    "\n"),
              HasSubstr("the completion is a list of messages, but the prompt is a text"));
}

// The template writes nothing between two turns of the assistant.
TEST_F(JsonlExamplesTest, OfTurnsThatTouchThoseOfTheCompletionAreLearned) {
  write_file_atomically(folder_.path() / "chat_template.jinja",
                        "{% for m in messages %}{% if m.role == 'user' %}u:{{ m.content }};{% else %}"
                        "{% generation %}{{ m.content }};{% endgeneration %}{% endif %}{% endfor %}");
  JsonlExamples source = open(R"({"prompt": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "a"}], )"
                              R"("completion": [{"role": "assistant", "content": "b"}, {"role": "user", "content": "2"}, )"
                              R"({"role": "assistant", "content": "c"}]})"
                              "\n",
                              {.max_tokens = 32});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "u:1;a;");
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(6, 7, 12, 13));  // of "u:1;a;b;u:2;c;"
}

TEST_F(JsonlExamplesTest, AConversationInWhichTheAssistantIsSilentIsRefused) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  EXPECT_THAT(error("{\"m\": [{\"role\": \"user\", \"content\": \"1\"}]}\n", {.messages_field = "m", .max_tokens = 32}),
              HasSubstr("data.jsonl:1:1: error: the assistant says nothing in it"));
}

TEST_F(JsonlExamplesTest, AConversationThatTheTemplateRefusesIsShownWithItsLine) {
  write_file_atomically(folder_.path() / "chat_template.jinja", "{{ raise_exception('no system message') }}");
  const std::string text =
      error("{\"m\": [{\"role\": \"system\", \"content\": \"1\"}]}\n", {.messages_field = "m", .max_tokens = 32});
  EXPECT_THAT(text, HasSubstr("data.jsonl:1:1: error: "));
  EXPECT_THAT(text, HasSubstr("no system message"));
}

TEST_F(JsonlExamplesTest, TooLongExampleIsShownBeforeTheRun) {
  const std::string text =
      error("{\"prompt\": \"1\", \"completion\": \"a\"}\n{\"prompt\": \"12345\", \"completion\": \"abc\"}\n");
  EXPECT_THAT(text, HasSubstr("data.jsonl:2:1: error: the example has 9 tokens, max_tokens is 8"));
  EXPECT_THAT(text, Not(HasSubstr("data.jsonl:1")));
}

TEST_F(JsonlExamplesTest, TooLongExampleIsLeftOutAndCountedWhereThatIsWanted) {
  engine::MetricsRecorder metrics;
  resources_.metrics = &metrics;
  JsonlExamples source = open("{\"prompt\": \"1\", \"completion\": \"a\"}\n{\"prompt\": \"12345\", \"completion\": \"abc\"}\n",
                              {.too_long = TooLong::kDrop});
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    engine::Group group;
    group.iteration = iteration;
    ASSERT_TRUE(source.next_group(group));
    EXPECT_EQ(group.read(columns::kPrompt)[0], "1");
  }
  source.begin_iteration({});
  EXPECT_THAT(metrics.take(), ElementsAre(Pair("data/rows_dropped", 1), Pair("data/rows_read", 2)));
}

TEST_F(JsonlExamplesTest, NothingIsCountedWhereNothingIsLeftOut) {
  engine::MetricsRecorder metrics;
  resources_.metrics = &metrics;
  open("{\"prompt\": \"1\", \"completion\": \"a\"}\n").begin_iteration({});
  EXPECT_TRUE(metrics.take().empty());
}

TEST_F(JsonlExamplesTest, ExampleWithoutPromptOrCompletionIsRefused) {
  EXPECT_THAT(error("{\"prompt\": \"\", \"completion\": \"a\"}\n"), HasSubstr("the prompt has no tokens"));
  EXPECT_THAT(error("{\"prompt\": \"1\", \"completion\": \"\"}\n", {.add_end_of_sequence = false}),
              HasSubstr("nothing to learn"));
}

TEST_F(JsonlExamplesTest, StatesItsWorstCase) {
  const auto needs = testing::needs_of<JsonlExamples>(JsonlExamplesParams{.groups_per_iteration = 4, .max_tokens = 9});
  EXPECT_EQ(needs.groups_per_iteration, 4);
  EXPECT_EQ(needs.samples_per_group, 1);
  EXPECT_EQ(needs.worst_sample_tokens, 9);
}

}  // namespace
}  // namespace sluice::nodes::jsonl_examples_test
