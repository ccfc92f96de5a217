#include "nodes/rollout/environments/tool_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "nodes/rollout/environments/tool_environment.h"
#include "tests/nodes/rollout/environments/tool_server_script.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::tool_turns_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::TinyFolder;

// Says which tool was called with what.
class Echo final : public ToolSource {
 public:
  std::vector<Tool> list() override { return {{.name = "echo", .description = {}, .parameters = Json::object()}}; }
  ToolAnswer call(const std::string& name, const Json& arguments, const AnswerWait&) override {
    if (name == "broken") return {.text = "error", .failed = true, .breakdown = "it is broken", .server = 0};
    if (name != "echo") return {.text = "error: no " + name, .failed = true};
    return {.text = arguments.value("text", "nothing"), .server = 0};
  }
};

// Of letters alone, as TinyFolder's tokenizer has them; <end> ends a turn.
const std::string kTemplate =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls %}<tool_call>{\"name\": \"{{ c.function.name "
    "}}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

class ToolTurnsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::ofstream(folder_.path() / "chat_template.jinja") << kTemplate; }

  std::shared_ptr<const ModelText> text() const { return std::make_shared<ModelText>("actor", folder_.path()); }

  std::unique_ptr<ToolTurns> turns(ToolLimits limits = {}) {
    const auto model = text();
    return std::make_unique<ToolTurns>(
        model, text::ToolChat(model->chat_template(), text::tool_call_format("hermes"), tool_schemas(Echo().list())), limits,
        std::make_unique<Echo>(), [this] {
          ++opened_;
          return std::make_unique<Echo>();
        });
  }

  Turn turn(const std::string& said) const {
    const std::string ended = said + "<end>";
    return {.prompt = {}, .label = {}, .transcript = {}, .last = {}, .tokens = text()->tokenizer().encode(ended)};
  }

  const TinyFolder folder_;
  std::atomic<int> opened_ = 0;
};

std::string call(const std::string& name, const std::string& arguments) {
  return "<tool_call>{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}</tool_call>";
}

TEST_F(ToolTurnsTest, ATurnWithoutACallIsTheLast) {
  EXPECT_TRUE(turns()->reply(turn("4")).done);
  EXPECT_TRUE(turns()->reply(turn("")).done);
}

TEST_F(ToolTurnsTest, ACallIsAnsweredAsTheTemplateHasIt) {
  const Reply reply = turns()->reply(turn("So: " + call("echo", "{\"text\": \"hi\"}")));
  EXPECT_FALSE(reply.done);
  EXPECT_EQ(reply.text, "<end>[tool]hi<end>[assistant]");  // a string of characters ended the turn, no end of sequence
  EXPECT_EQ(reply.counts.at(kToolCalls), 1);
  EXPECT_EQ(reply.counts.at(kFailedToolCalls), 0);
}

TEST_F(ToolTurnsTest, WhatIsWrongWithACallIsItsResult) {
  const Reply reply = turns()->reply(turn(call("echo", "3") + call("ehco", "{}") + call("echo", "{\"text\": \"hi\"}")));
  EXPECT_EQ(reply.text,
            "<end>[tool]error: \"arguments\" of the call is no object<end>[tool]error: no ehco<end>[tool]hi<end>[assistant]");
  EXPECT_EQ(reply.counts.at(kToolCalls), 3);
  EXPECT_EQ(reply.counts.at(kFailedToolCalls), 2);
}

TEST_F(ToolTurnsTest, ABreakdownOfAServerIsCountedByItself) {
  const Reply reply = turns()->reply(turn(call("broken", "{}") + call("ehco", "{}") + call("echo", "{}")));
  EXPECT_EQ(reply.counts.at(kToolCalls), 3);
  EXPECT_EQ(reply.counts.at(kFailedToolCalls), 1);
  EXPECT_EQ(reply.counts.at(kBrokenToolCalls), 1);
}

TEST_F(ToolTurnsTest, AResultThatIsTooLongIsCutBetweenCharactersWithANote) {
  const auto tool = turns({.result_bytes = 4});
  EXPECT_THAT(tool->reply(turn(call("echo", "{\"text\": \"abcd\"}"))).text, HasSubstr("[tool]abcd<end>"));
  EXPECT_THAT(tool->reply(turn(call("echo", "{\"text\": \"abcde\"}"))).text, HasSubstr("[tool]abcd\n[cut: 5 bytes]<end>"));
  EXPECT_THAT(tool->reply(turn(call("echo", "{\"text\": \"abc\\u00fc\"}"))).text, HasSubstr("[tool]abc\n[cut: 5 bytes]<end>"));
}

TEST_F(ToolTurnsTest, CallsAfterTheTimeOfATurnAreNotMade) {
  const auto tool = turns({.turn = std::chrono::seconds(0)});
  EXPECT_THAT(tool->reply(turn(call("echo", "{}"))).text, HasSubstr("[tool]error: the tool did not answer in time<end>"));
}

TEST_F(ToolTurnsTest, ThereIsASourceForEachTurnAtATimeAndNoMore) {
  const auto tool = turns({.workers = 4});
  const Turn asked = turn(call("echo", "{}"));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int time = 0; time < 200; ++time) tool->reply(asked);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(opened_, 3);  // beside the one that was there
}

class ToolEnvironmentTest : public ToolTurnsTest {
 protected:
  ToolEnvironmentParams params(const std::string& changes = {}) {
    ToolEnvironmentParams params;
    params.servers = {testing::tool_server_in(server_, changes)};
    return params;
  }

  const TemporaryFolder server_;
};

TEST_F(ToolEnvironmentTest, CallsReachTheServerAndItsAnswerComesBack) {
  const auto environment = ToolEnvironment(params()).for_model(text());
  EXPECT_EQ(environment->reply(turn(call("add", "{\"a\": 2, \"b\": 3}"))).text, "<end>[tool]5<end>[assistant]");
  EXPECT_THAT(environment->reply(turn(call("sub", "{}"))).text, HasSubstr("error: there is no tool \"sub\", the tools are add"));
}

TEST_F(ToolEnvironmentTest, AServerThatDoesNotStartEndsTheRunThere) {
  EXPECT_THAT([&] { ToolEnvironment(params("os._exit(3)\n")).for_model(text()); },
              ThrowsMessage<UserError>(HasSubstr("tool server \"python3 -S server.py\": it exited with code 3")));
  ToolEnvironmentParams hanging = params("time.sleep(1000)\n");
  hanging.start_seconds = 0.3;
  EXPECT_THAT([&] { ToolEnvironment(hanging).for_model(text()); },
              ThrowsMessage<UserError>(HasSubstr("it did not answer in time")));
}

TEST_F(ToolEnvironmentTest, AutoNeedsATemplateThatWritesCalls) {
  std::ofstream(folder_.path() / "chat_template.jinja") << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
  EXPECT_THAT([&] { ToolEnvironment(params()).for_model(text()); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("the chat template of model 'actor' writes no tool calls"),
                                             HasSubstr("format = \"hermes\", or \"mistral\""))));
  ToolEnvironmentParams named = params();
  named.format = ToolFormat::kLlama3;
  EXPECT_NO_THROW(ToolEnvironment(named).for_model(text()));
}

}  // namespace
}  // namespace sluice::nodes::tool_turns_test
