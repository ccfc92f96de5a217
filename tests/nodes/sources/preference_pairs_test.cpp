#include "nodes/sources/preference_pairs.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::preference_pairs_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// The tokenizer of the tiny model has one id a character: '0' is 17, 'a' is 66, a space 1, the end of sequence 0.
class PreferencePairsTest : public ::testing::Test {
 protected:
  void SetUp() override { resources_.models["actor"] = testing::tiny_model(folder_.path(), {}); }

  PreferencePairs open(const std::string& text, PreferencePairsParams params = {}) {
    params.path = {folder_.path() / "data.jsonl"};
    params.model = "actor";
    params.shuffle = false;
    if (params.max_tokens == 0) params.max_tokens = 32;
    write_file_atomically(params.path.front(), text);
    return PreferencePairs(params, resources_);
  }

  engine::Group first(const std::string& text, PreferencePairsParams params = {}) {
    PreferencePairs source = open(text, std::move(params));
    engine::Group group;
    EXPECT_TRUE(source.next_group(group));
    return group;
  }

  std::string error(const std::string& text, PreferencePairsParams params = {}) {
    try {
      open(text, std::move(params));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  testing::TinyFolder folder_;
  engine::NodeResources resources_;
};

TEST_F(PreferencePairsTest, WithChatTextsAreTurns) {
  write_file_atomically(
      folder_.path() / "chat_template.jinja",
      "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<eos>"
      "{% endgeneration %}{% else %}{{ m.content }};{% endif %}{% endfor %}");
  const engine::Group group =
      first("{\"prompt\": \"1\", \"chosen\": \"ab\", \"rejected\": \"b\"}\n", {.chat = true, .system = "2"});
  EXPECT_EQ(group.read(columns::kPrompt)[0], "s:2;u:1;a:");
  EXPECT_THAT(group.layout.token_offsets, ElementsAre(0, 13, 25));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(10, 11, 12, 23, 24));
  EXPECT_THAT(error("{\"chosen\": \"1ab\", \"rejected\": \"1b\"}\n", {.chat = true}), HasSubstr("chat = true needs a prompt"));
}

TEST_F(PreferencePairsTest, AreGroupsOfTheBetterAndTheWorseSample) {
  const engine::Group group = first("{\"prompt\": \"1 0\", \"chosen\": \"ab\", \"rejected\": \"b\"}\n");
  EXPECT_THAT(group.read(columns::kTokens), ElementsAre(18, 1, 17, 66, 67, 0, 18, 1, 17, 67, 0));
  EXPECT_THAT(group.layout.token_offsets, ElementsAre(0, 6, 11));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(3, 4, 5, 9, 10));
  EXPECT_THAT(group.layout.action_offsets, ElementsAre(0, 3, 5));
  EXPECT_THAT(group.layout.group_offsets, ElementsAre(0, 2));
  EXPECT_THAT(group.read(columns::kScore), ElementsAre(1, 0));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "1 0");
}

TEST_F(PreferencePairsTest, RankedFieldsAreAnyNumberOfCompletionsTheBestFirst) {
  const PreferencePairsParams params{.ranked_fields = {"x", "y", "z"}, .add_end_of_sequence = false};
  const engine::Group three = first("{\"prompt\": \"1\", \"x\": \"a\", \"y\": \"ab\", \"z\": \"b\"}\n", params);
  EXPECT_THAT(three.read(columns::kTokens), ElementsAre(18, 66, 18, 66, 67, 18, 67));
  EXPECT_THAT(three.layout.group_offsets, ElementsAre(0, 3));
  EXPECT_THAT(three.read(columns::kScore), ElementsAre(2, 1, 0));
  const engine::Group two = first("{\"prompt\": \"1\", \"x\": \"a\", \"y\": \"b\"}\n", params);
  EXPECT_THAT(two.read(columns::kScore), ElementsAre(1, 0));
  EXPECT_THAT(error("{\"prompt\": \"1\", \"x\": \"a\"}\n", params), HasSubstr("\"y\""));
  EXPECT_THAT(error("{\"x\": \"1a\", \"y\": \"1b\"}\n", params), HasSubstr("ranked_fields need a prompt"));
}

TEST_F(PreferencePairsTest, ATooLongRankedCompletionIsNamedByItsFieldAlsoBehindOneThatIsNotThere) {
  const PreferencePairsParams params{.ranked_fields = {"x", "y", "z", "w"}, .max_tokens = 8};
  EXPECT_THAT(error(R"({"prompt": "1", "x": "a", "y": "b", "w": "abcdefgh"})"
                    "\n",
                    params),
              HasSubstr("data.jsonl:1:1: error: the \"w\" sample has 10 tokens, max_tokens is 8"));
}

TEST_F(PreferencePairsTest, WithoutAPromptItIsTheCommonBeginning) {
  const engine::Group group =
      first("{\"chosen\": \"1a\", \"rejected\": \"1b\"}\n", {.prompt_field = "", .add_end_of_sequence = false});
  EXPECT_THAT(group.read(columns::kTokens), ElementsAre(18, 66, 18, 67));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(1, 3));
}

TEST_F(PreferencePairsTest, MarginIsReadWhereItIsNamed) {
  EXPECT_EQ(first("{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": \"b\", \"m\": 0.5}\n", {.margin_field = "m"})
                .read(columns::kMargin)[0],
            0.5f);
  EXPECT_THAT(error("{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": \"b\", \"m\": \"far\"}\n", {.margin_field = "m"}),
              HasSubstr("data.jsonl:1:1: error: the margin \"far\" is not a number"));
  EXPECT_THAT(error("{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": \"b\", \"m\": 1e39}\n", {.margin_field = "m"}),
              HasSubstr("data.jsonl:1:1: error: the margin \"1e+39\" is too large"));
}

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role[0] }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<eos>{% endgeneration %}"
    "{% else %}{{ m.content }};{% endif %}{% endfor %}";

TEST_F(PreferencePairsTest, OfMessagesWhatTheAssistantSaysBehindThePromptIsLearned) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  const std::string given =
      R"({"role": "user", "content": "1"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "2"})";
  const engine::Group group = first("{\"chosen\": [" + given + R"(, {"role": "assistant", "content": "b"}], "rejected": [)" +
                                    given + R"(, {"role": "assistant", "content": ""}]})" + "\n");
  // u:1;a:a<eos>u:2;a:b<eos> and u:1;a:a<eos>u:2;a:<eos>
  EXPECT_THAT(group.layout.token_offsets, ElementsAre(0, 16, 31));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(14, 15, 30));
  EXPECT_THAT(group.layout.action_offsets, ElementsAre(0, 2, 3));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "u:1;a:a<eos>u:2;a:");
}

// The best one has more in common with the worst than with the second: as an action of the one alone, what the two have in common
// would not cancel out.
TEST_F(PreferencePairsTest, ThePromptOfRankedConversationsIsWhatAllOfThemHaveInCommon) {
  write_file_atomically(folder_.path() / "chat_template.jinja", kTemplate);
  const auto conversation = [](const std::string& first, const std::string& last) {
    const auto message = [](const std::string& role, const std::string& content) {
      return Json{{"role", role}, {"content", content}};
    };
    return Json{message("user", "1"), message("assistant", first), message("user", "2"), message("assistant", last)};
  };
  const Json row{{"prompt", "1"}, {"x", conversation("a", "b")}, {"y", conversation("c", "b")}, {"z", conversation("a", "d")}};
  const engine::Group group = first(row.dump() + "\n", {.ranked_fields = {"x", "y", "z"}, .max_tokens = 64});
  EXPECT_EQ(group.read(columns::kPrompt)[0], "u:1;a:");
  EXPECT_THAT(group.layout.token_offsets, ElementsAre(0, 16, 32, 48));
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(6, 7, 14, 15, 22, 23, 30, 31, 38, 39, 46, 47));
}

TEST_F(PreferencePairsTest, ThePromptOfRankedTextsBesideMessagesIsWhatAllOfThemHaveInCommon) {
  const PreferencePairsParams params{.ranked_fields = {"x", "y", "z"}, .add_end_of_sequence = false};
  const engine::Group group = first(R"({"prompt": [{"role": "user", "content": "1"}], "x": "1ab", "y": "1cb", "z": "1ad"})"
                                    "\n",
                                    params);
  EXPECT_EQ(group.read(columns::kPrompt)[0], "1");
  EXPECT_THAT(group.layout.action_tokens, ElementsAre(1, 2, 4, 5, 7, 8));
}

TEST_F(PreferencePairsTest, APairWithATooLongSampleIsShownBeforeTheRun) {
  const std::string rows =
      "{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": \"b\"}\n{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": "
      "\"abcdefgh\"}\n";
  EXPECT_THAT(error(rows, {.max_tokens = 8}),
              HasSubstr("data.jsonl:2:1: error: the rejected sample has 10 tokens, max_tokens is 8"));
}

TEST_F(PreferencePairsTest, ATooLongPairIsLeftOutAndCountedWhereThatIsWanted) {
  engine::MetricsRecorder metrics;
  resources_.metrics = &metrics;
  open(
      "{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": \"b\"}\n{\"prompt\": \"12345\", \"chosen\": \"abc\", \"rejected\": "
      "\"a\"}\n",
      {.max_tokens = 8, .too_long = TooLong::kDrop})
      .begin_iteration({});
  EXPECT_THAT(metrics.take(), ElementsAre(Pair("data/rows_dropped", 1), Pair("data/rows_read", 2)));
}

TEST_F(PreferencePairsTest, WhatIsNoPairIsShownWithItsLine) {
  EXPECT_THAT(error("{\"prompt\": \"1\", \"chosen\": \"a\", \"rejected\": [{\"role\": \"user\", \"content\": \"1\"}]}\n"),
              HasSubstr("data.jsonl:1:1: error: of chosen and rejected one is a string"));
  EXPECT_THAT(error("{\"prompt\": \"1\", \"chosen\": \"a\"}\n"), HasSubstr("rejected"));
  EXPECT_THAT(error("{\"prompt\": \"\", \"chosen\": \"a\", \"rejected\": \"b\"}\n"), HasSubstr("the prompt has no tokens"));
}

TEST_F(PreferencePairsTest, StatesItsWorstCase) {
  const auto needs = testing::needs_of<PreferencePairs>(PreferencePairsParams{.groups_per_iteration = 4, .max_tokens = 9});
  EXPECT_EQ(needs.groups_per_iteration, 4);
  EXPECT_EQ(needs.samples_per_group, 2);
  EXPECT_EQ(needs.worst_sample_tokens, 9);
}

}  // namespace
}  // namespace sluice::nodes::preference_pairs_test
