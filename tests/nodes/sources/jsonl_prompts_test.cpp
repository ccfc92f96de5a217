#include "nodes/sources/jsonl_prompts.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::jsonl_prompts_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class JsonlPromptsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sluice-jsonl-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = folder_ / "data.jsonl";
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& text) { write_file_atomically(path_, text); }

  void write_rows(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "{\"prompt\": \"p" + std::to_string(i) + "\", \"label\": " + std::to_string(i) + "}\n";
    write(text);
  }

  JsonlPrompts open(JsonlPromptsParams params = {}, uint64_t seed = 1) {
    params.path = {path_};
    resources_.seed = seed;
    return JsonlPrompts(params, resources_);
  }

  // Of a rollout that samples from `model`.
  static engine::PromptLimit limit_of(int64_t tokens, const testing::TinyFolder& model, bool leaves_out_longer = false) {
    return {.tokens = tokens,
            .leaves_out_longer = leaves_out_longer,
            .add_special = false,
            .node = "generate",
            .model = "actor",
            .folder = model.path()};
  }

  // The next prompt; empty at the end of the data.
  static std::string prompt(JsonlPrompts& source, int64_t iteration, int64_t index) {
    engine::Group group;
    group.iteration = iteration, group.index = index;
    return source.next_group(group) ? group.read(columns::kPrompt)[0] : "";
  }

  std::string error() {
    try {
      open();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_, path_;
  engine::NodeResources resources_;
};

TEST_F(JsonlPromptsTest, RowsComeInTheOrderOfTheFileWithoutShuffle) {
  write_rows(3);
  JsonlPrompts source = open({.groups_per_iteration = 2, .shuffle = false});
  EXPECT_EQ(prompt(source, 0, 0), "p0");
  EXPECT_EQ(prompt(source, 0, 1), "p1");
  EXPECT_EQ(prompt(source, 1, 0), "p2");
  EXPECT_EQ(prompt(source, 1, 1), "p0");  // the next epoch
}

TEST_F(JsonlPromptsTest, OtherFieldsBecomeColumns) {
  write("{\"prompt\": \"p\", \"label\": \"l\", \"domain\": \"maths\", \"level\": 3}\n");
  JsonlPrompts source = open({.columns = {"level", "domain"}});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(engine::Column<std::string>{"domain", engine::Extent::kGroup})[0], "maths");
  EXPECT_EQ(group.read(engine::Column<std::string>{"level", engine::Extent::kGroup})[0], "3");
  EXPECT_EQ(group.read(columns::kLabel)[0], "l");
}

// All such rows are told, each with its line.
TEST_F(JsonlPromptsTest, TextThatANodeCannotUseIsRefused) {
  write(R"({"prompt": "p", "label": "", "domain": "maths"}
{"prompt": "p", "label": "", "domain": "math"}
{"prompt": "p", "label": "", "domain": "code"}
{"prompt": "p", "label": "", "domain": 7}
)");
  const auto knows = [](std::set<std::string> values) {
    return [values](const std::string& text) {
      if (!values.contains(text)) throw UserError("is none of them", "leave it out");
    };
  };
  resources_.text_checks = {{"domain", knows({"maths", "code"}), "teacher"}, {"other", knows({}), "nobody"}};
  const std::string told = message_of<UserError>([&] { open({.columns = {"domain"}}); });
  EXPECT_THAT(told, HasSubstr("data.jsonl:2"));
  EXPECT_THAT(told, HasSubstr("node 'teacher' cannot use domain \"math\": it is none of them"));
  EXPECT_THAT(told, HasSubstr("leave it out"));
  EXPECT_THAT(told, HasSubstr("data.jsonl:4"));
  EXPECT_THAT(told, Not(HasSubstr("data.jsonl:3")));
  resources_.text_checks[0].check = knows({"maths", "math", "code", "7"});
  EXPECT_NO_THROW(open({.columns = {"domain"}}));
}

TEST_F(JsonlPromptsTest, AFieldIsNoColumnThatNodesExchange) {
  write_rows(1);
  for (const std::string name : {"score", "margin", "step_rewards"}) {
    const engine::Array columns{{.data = name, .where = {}, .base = {}}};
    EXPECT_THAT(NodeHarness<JsonlPrompts>::problems(
                    {{"path", {path_.string()}}, {"groups_per_iteration", {int64_t{1}}}, {"columns", {columns}}}),
                ElementsAre("a column \"" + name + "\" has a meaning of its own for nodes"));
  }
}

TEST_F(JsonlPromptsTest, LabelThatAScorerCannotUseIsRefused) {
  write(R"({"prompt": "p", "label": "72"}
{"prompt": "p", "label": "many"}
)");
  const auto is_number = [](const std::string& label) {
    if (label != "72") throw UserError("holds no number");
  };
  resources_.text_checks = {{"label", is_number, "score"}};
  EXPECT_THAT(message_of<UserError>([&] { open({}); }),
              AllOf(HasSubstr("data.jsonl:2"), HasSubstr("node 'score' cannot use label \"many\": it holds no number")));
  EXPECT_NO_THROW(open({.label_field = ""}));
}

// The tokenizer has one token for each character of printable ASCII, and none for others.
TEST_F(JsonlPromptsTest, PromptThatTheRolloutDoesNotTakeIsRefused) {
  const testing::TinyFolder model;
  resources_.prompt_limit = limit_of(8, model);
  write(R"({"prompt": "1+1=", "label": ""}
{"prompt": "123456789", "label": ""}
{"prompt": "12345678", "label": ""}
{"prompt": "", "label": ""}
{"prompt": "äöü", "label": ""}
)");
  const std::string told = message_of<UserError>([&] { open(); });
  EXPECT_THAT(told, HasSubstr("data.jsonl:2:1: error: the prompt has 9 tokens, max_prompt_tokens of node 'generate' is 8"));
  EXPECT_THAT(told, HasSubstr("max_prompt_tokens >= 9 in [nodes.generate]"));
  EXPECT_THAT(told, HasSubstr("data.jsonl:4:1: error: the prompt is empty"));
  EXPECT_THAT(told, HasSubstr("data.jsonl:5:1: error: the prompt has no tokens"));
  EXPECT_THAT(told, Not(AnyOf(HasSubstr("data.jsonl:1"), HasSubstr("data.jsonl:3"))));
}

TEST_F(JsonlPromptsTest, LongerPromptsThatTheRolloutLeavesOutStay) {
  const testing::TinyFolder model;
  resources_.prompt_limit = limit_of(2, model, /*leaves_out_longer=*/true);
  write(R"({"prompt": "123456789", "label": ""}
{"prompt": "12", "label": ""}
)");
  JsonlPrompts source = open({.shuffle = false});
  EXPECT_EQ(prompt(source, 0, 0), "123456789");
}

TEST_F(JsonlPromptsTest, PromptsAllOfWhichTheRolloutLeavesOutAreRefused) {
  const testing::TinyFolder model;
  resources_.prompt_limit = limit_of(2, model, /*leaves_out_longer=*/true);
  write(R"({"prompt": "123456789", "label": ""}
{"prompt": "123", "label": ""}
)");
  const std::string told = message_of<UserError>([&] { open(); });
  EXPECT_THAT(told, HasSubstr("no prompt is left: the shortest has 3 tokens, max_prompt_tokens of node 'generate' is 2"));
  EXPECT_THAT(told, HasSubstr("max_prompt_tokens >= 3 in [nodes.generate]"));
}

TEST_F(JsonlPromptsTest, GroupHasPromptAndLabelAndNoSamples) {
  write("{\"question\": \"6 * 7\", \"answer\": 42}\n");
  JsonlPrompts source = open({.prompt_field = "question", .label_field = "answer", .prefix = "Q: ", .suffix = " A:"});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "Q: 6 * 7 A:");
  EXPECT_EQ(group.read(columns::kLabel)[0], "42");
  EXPECT_EQ(group.layout.groups(), 1u);
  EXPECT_EQ(group.layout.samples(), 0u);
}

TEST_F(JsonlPromptsTest, EachEpochHasEveryRowOnceInAnotherOrder) {
  write_rows(50);
  JsonlPrompts source = open({.groups_per_iteration = 50});
  std::vector<std::string> first, second;
  for (int i = 0; i < 50; ++i) first.push_back(prompt(source, 0, i));
  for (int i = 0; i < 50; ++i) second.push_back(prompt(source, 1, i));
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 50u);
  EXPECT_TRUE(std::ranges::is_permutation(first, second));
}

TEST_F(JsonlPromptsTest, TheOrderDependsOnTheSeed) {
  write_rows(50);
  JsonlPrompts source = open({}, 3), same_seed = open({}, 3), other_seed = open({}, 4);
  std::vector<std::string> a, b, c;
  for (int64_t g = 0; g < 7; ++g)
    a.push_back(prompt(source, 0, g)), b.push_back(prompt(same_seed, 0, g)), c.push_back(prompt(other_seed, 0, g));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST_F(JsonlPromptsTest, DataEndsAfterTheLastEpoch) {
  write_rows(3);
  JsonlPrompts source = open({.groups_per_iteration = 2, .epochs = 1});
  EXPECT_NE(prompt(source, 0, 0), "");
  EXPECT_NE(prompt(source, 0, 1), "");
  EXPECT_NE(prompt(source, 1, 0), "");
  EXPECT_EQ(prompt(source, 1, 1), "");
}

TEST_F(JsonlPromptsTest, FilesOfAFolderAreOneListOfRows) {
  write("{\"prompt\": \"b\", \"label\": \"\"}\n");
  write_file_atomically(folder_ / "a.jsonl", "{\"prompt\": \"a\", \"label\": \"\"}\n");
  JsonlPromptsParams params{.path = {folder_}, .groups_per_iteration = 2, .shuffle = false};
  JsonlPrompts source(params, resources_);
  EXPECT_EQ(prompt(source, 0, 0) + prompt(source, 0, 1) + prompt(source, 1, 0), "aba");
}

TEST_F(JsonlPromptsTest, WeightsMixThePaths) {
  write("{\"prompt\": \"b\", \"label\": \"\"}\n");
  write_file_atomically(folder_ / "a.jsonl", "{\"prompt\": \"a\", \"label\": \"\"}\n");
  JsonlPromptsParams params{.path = {folder_ / "a.jsonl", path_}, .weights = {3, 1}, .groups_per_iteration = 40};
  JsonlPrompts source(params, resources_);
  int of_a = 0;
  for (int64_t i = 0; i < 40; ++i) of_a += prompt(source, 1, i) == "a";
  EXPECT_EQ(of_a, 30);
}

TEST_F(JsonlPromptsTest, LabelMayLieDeeper) {
  write("{\"prompt\": \"a\", \"meta\": {\"answer\": 42}}\n");
  JsonlPrompts source = open({.label_field = "meta.answer"});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kLabel)[0], "42");
}

TEST_F(JsonlPromptsTest, ConversationsBecomePromptsByTheChatTemplate) {
  write(R"({"m": [{"role": "user", "content": "2+2"}], "label": 4})"
        "\n");
  const testing::TinyFolder model;
  write_file_atomically(model.path() / "chat_template.jinja",
                        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                        "{% if add_generation_prompt %}<assistant>{% endif %}{{ style }}");
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  JsonlPromptsParams params{
      .path = {path_}, .suffix = "=", .messages_field = "m", .chat_variables = "{\"style\": \"!\"}", .model = "actor"};
  JsonlPrompts source(params, resources_);
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "<user>2+2<assistant>!=");
  EXPECT_EQ(Json::parse(group.read(columns::kMessages)[0]), Json::parse(R"([{"role": "user", "content": "2+2"}])"));
}

TEST_F(JsonlPromptsTest, ToolsOfAFileAreShownByTheChatTemplate) {
  write("{\"prompt\": \"2+2\", \"label\": 4}\n");
  const testing::TinyFolder model;
  write_file_atomically(model.path() / "chat_template.jinja",
                        "{% for t in tools %}[{{ t.function.name }}]{% endfor %}{{ messages[0].content }}");
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  const fs::path tools = folder_ / "tools.json";
  const auto prompt_with = [&](const std::string& text) {
    write_file_atomically(tools, text);
    try {
      JsonlPrompts source({.path = {path_}, .chat = true, .tools = tools, .model = "actor"}, resources_);
      return prompt(source, 0, 0);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(
      prompt_with(R"([{"type": "function", "function": {"name": "add"}}, {"type": "function", "function": {"name": "now"}}])"),
      "[add][now]2+2");
  EXPECT_THAT(prompt_with("{\"name\": \"add\"}"), HasSubstr("tools.json is no list of tools, each a JSON object"));
  EXPECT_THAT(prompt_with("[\"add\"]"), HasSubstr("tools.json is no list of tools"));
  EXPECT_THAT(prompt_with("[,]"), HasSubstr("tools.json"));
  fs::remove(tools);
  JsonlPromptsParams params{.path = {path_}, .chat = true, .tools = tools, .model = "actor"};
  EXPECT_THAT([&] { JsonlPrompts(params, resources_); },
              ::testing::ThrowsMessage<UserError>(::testing::AllOf(HasSubstr("there is no file"), HasSubstr("rlhf-run tools"))));
}

constexpr const char* kTurns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

TEST_F(JsonlPromptsTest, WithChatAPromptIsTheUsersTurnAndTravelsAsAConversation) {
  write("{\"question\": \"2+2\", \"label\": 4}\n");
  const testing::TinyFolder model;
  write_file_atomically(model.path() / "chat_template.jinja", kTurns);
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  JsonlPrompts source({.path = {path_},
                       .prompt_field = "question",
                       .prefix = "What is ",
                       .suffix = "?",
                       .chat = true,
                       .system = "Be brief.",
                       .model = "actor"},
                      resources_);
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "<system>Be brief.<user>What is 2+2?<assistant>");
  EXPECT_EQ(group.read(columns::kMessages)[0],
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"What is 2+2?"}])");
}

TEST_F(JsonlPromptsTest, OnlyConversationsAreWrittenAsMessages) {
  const auto writes_messages = [](const JsonlPromptsParams& params) {
    const auto needs = testing::needs_of<JsonlPrompts>(params);
    const bool written = std::ranges::count(needs.writes, columns::kMessages.spec()) == 1;
    EXPECT_EQ(needs.by_products.contains("messages"), written);
    return written;
  };
  EXPECT_TRUE(writes_messages({.chat = true}));
  EXPECT_TRUE(writes_messages({.messages_field = "m"}));
  EXPECT_FALSE(writes_messages({.chat = false}));
  EXPECT_FALSE(writes_messages({}));
}

TEST_F(JsonlPromptsTest, AConversationThatEndsWithTheAssistantIsNoPrompt) {
  write(R"({"m": [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "4"}], "label": 4})"
        "\n");
  const testing::TinyFolder model;
  write_file_atomically(model.path() / "chat_template.jinja", "x");
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  EXPECT_THAT(
      message_of<UserError>([&] { JsonlPrompts({.path = {path_}, .messages_field = "m", .model = "actor"}, resources_); }),
      HasSubstr("data.jsonl:1:1: error: the last message is the assistant's"));
}

TEST_F(JsonlPromptsTest, TooLongPromptIsShownBeforeTheRun) {
  write("{\"prompt\": \"12\", \"label\": \"\"}\n{\"prompt\": \"12345\", \"label\": \"\"}\n");
  const testing::TinyFolder model;
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  const JsonlPromptsParams params{.path = {path_}, .suffix = "=", .model = "actor", .max_prompt_tokens = 5};
  EXPECT_THAT(message_of<UserError>([&] { JsonlPrompts(params, resources_); }),
              HasSubstr("data.jsonl:2:1: error: the prompt has 6 tokens, max_prompt_tokens is 5"));
}

TEST_F(JsonlPromptsTest, TooLongPromptIsLeftOutAndCountedWhereThatIsWanted) {
  write("{\"prompt\": \"12\", \"label\": \"\"}\n{\"prompt\": \"12345\", \"label\": \"\"}\n");
  const testing::TinyFolder model;
  resources_.models["actor"] = testing::tiny_model(model.path(), {});
  engine::MetricsRecorder metrics;
  resources_.metrics = &metrics;
  JsonlPrompts source({.path = {path_}, .model = "actor", .max_prompt_tokens = 4, .too_long = TooLong::kDrop}, resources_);
  EXPECT_EQ(prompt(source, 0, 0) + prompt(source, 1, 0), "1212");
  source.begin_iteration({});
  EXPECT_THAT(metrics.take(), ElementsAre(::testing::Pair("data/rows_dropped", 1), ::testing::Pair("data/rows_read", 2)));
}

TEST_F(JsonlPromptsTest, BlankLinesCarriageReturnsAndAMissingLastLineBreakAreFine) {
  write("\xEF\xBB\xBF{\"prompt\": \"a\", \"label\": \"\"}\r\n\r\n  \n{\"prompt\": \"b\", \"label\": \"\"}");
  JsonlPrompts source = open({.groups_per_iteration = 2, .shuffle = false});
  EXPECT_EQ(prompt(source, 0, 0), "a");
  EXPECT_EQ(prompt(source, 0, 1), "b");
  EXPECT_EQ(prompt(source, 1, 0), "a");
}

TEST_F(JsonlPromptsTest, BrokenLineIsShownWithItsPlace) {
  write("{\"prompt\": \"a\", \"label\": \"\"}\n{\"prompt\": \"b\" x}\n");
  EXPECT_THAT(error(), HasSubstr("data.jsonl:2:16: error: this line is not a JSON object"));
  EXPECT_THAT(error(), HasSubstr("{\"prompt\": \"b\" x}"));
}

TEST_F(JsonlPromptsTest, AllBrokenLinesAreReportedAtOnce) {
  write("1\n{\"prompt\": [], \"label\": \"\"}\n{\"prompt\": \"b\", \"label\": true}\n");
  EXPECT_THAT(error(), HasSubstr("data.jsonl:1:1: error: each line must be a JSON object"));
  EXPECT_THAT(error(), HasSubstr("data.jsonl:2:1: error: field \"prompt\" must be a string or a number"));
  EXPECT_THAT(error(), HasSubstr("data.jsonl:3:1: error: field \"label\" must be a string or a number"));
}

TEST_F(JsonlPromptsTest, AtMostTwentyBrokenLinesAreReported) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "oops\n";
  write(text);
  EXPECT_THAT(error(), HasSubstr("data.jsonl:20:"));
  EXPECT_THAT(error(), Not(HasSubstr("data.jsonl:21:")));
}

TEST_F(JsonlPromptsTest, MissingFieldNamesThoseThatAreThere) {
  write("{\"promt\": \"a\", \"label\": \"\"}\n{\"promt\": \"b\", \"label\": \"\"}\n");
  const std::string text = error();
  EXPECT_THAT(text, HasSubstr("no field \"prompt\""));
  EXPECT_THAT(text, HasSubstr("fields here: promt, label"));
  EXPECT_THAT(text, HasSubstr("prompt_field = \"promt\"?"));
  EXPECT_THAT(text, Not(HasSubstr("data.jsonl:2")));  // once is enough
}

TEST_F(JsonlPromptsTest, FileWithoutRowsIsRefused) {
  write("\n\n");
  EXPECT_THAT(error(), HasSubstr("holds no rows"));
}

TEST_F(JsonlPromptsTest, NoTextIsLongerThanThePlanIsTold) {
  const std::string letters(100, 'x');
  write("{\"prompt\": \"a\\n\\u00e9\", \"label\": 1}\n{\"prompt\": \"" + letters + "\", \"label\": 1e5}\n");
  engine::Contract<JsonlPromptsParams> contract;
  JsonlPrompts::describe(contract);
  const auto bounds = contract.needs_of({.path = {path_}, .prefix = "ab", .suffix = "c"}).string_bytes;
  EXPECT_EQ(bounds.at("prompt"), 3 + 100 + 28);  // the longest line, prefix and suffix
  EXPECT_EQ(bounds.at("label"), 100 + 28);
  EXPECT_FALSE(contract.needs_of({.path = {path_}, .label_field = ""}).string_bytes.contains("label"));
  EXPECT_EQ(contract.needs_of({.path = {folder_ / "missing"}}).string_bytes.at("prompt"), 0);
}

// So that a scorer that needs one is refused before the run.
TEST_F(JsonlPromptsTest, WithoutALabelFieldThereIsNoLabel) {
  write("{\"prompt\": \"a\"}\n");
  JsonlPrompts source = open({.label_field = ""});
  engine::Group group;
  ASSERT_TRUE(source.next_group(group));
  EXPECT_EQ(group.read(columns::kPrompt)[0], "a");
  EXPECT_THROW(group.read(columns::kLabel), UserError);
}

}  // namespace
}  // namespace sluice::nodes::jsonl_prompts_test
