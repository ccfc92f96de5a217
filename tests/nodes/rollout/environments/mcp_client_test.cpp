#include "nodes/rollout/environments/mcp_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/nodes/rollout/environments/tool_server_script.h"

namespace sluice::nodes::mcp_client_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

McpClient::Clock::time_point in(milliseconds time) { return McpClient::Clock::now() + time; }
McpClient::Clock::time_point soon() { return in(std::chrono::minutes(1)); }

const Json kTwoAndThree = {{"a", 2}, {"b", 3}};

class McpClientTest : public ::testing::Test {
 protected:
  McpClient client(const std::string& changes = {}) { return McpClient(testing::tool_server_in(folder_, changes), soon()); }

  ToolAnswer answer(const std::string& changes) { return client(changes).call("add", kTwoAndThree, soon()); }

  // What happens to a server with these changes when it is started, asked for its tools and called, within so long.
  std::string fate(const std::string& changes, milliseconds time = std::chrono::minutes(1)) {
    try {
      McpClient client(testing::tool_server_in(folder_, changes), in(time));
      client.list(in(time));
      return client.call("add", kTwoAndThree, in(time)).text;
    } catch (const UserError& error) {
      return error.what();
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(McpClientTest, ToolsAreListedAndCalled) {
  McpClient client = this->client();
  const std::vector<Tool> tools = client.list(soon());
  ASSERT_EQ(tools.size(), 1u);
  EXPECT_EQ(tools[0].name, "add");
  EXPECT_EQ(tools[0].description, "adds");
  EXPECT_EQ(tools[0].parameters.dump(), R"({"type":"object","properties":{"a":{},"b":{}}})");
  for (int time = 0; time < 3; ++time) {
    const ToolAnswer answer = client.call("add", kTwoAndThree, soon());
    EXPECT_EQ(answer.text, "5");
    EXPECT_FALSE(answer.failed);
  }
}

TEST_F(McpClientTest, AListInPagesIsReadToItsEnd) {
  const auto tools = client(R"(
def list_tools(params):
    page = int(params.get("cursor", "0"))
    return {"tools": [tool(f"t{page}")], **({"nextCursor": str(page + 1)} if page < 2 else {})}
)")
                         .list(soon());
  ASSERT_EQ(tools.size(), 3u);
  EXPECT_EQ(tools[2].name, "t2");
}

TEST_F(McpClientTest, WhatAServerAsksMeanwhileIsAnsweredAndWhatItNotifiesOfIsPassedOver) {
  EXPECT_EQ(fate(R"(
def ask(method):
    say(id="mine", method=method)
    return json.loads(sys.stdin.readline())
def call(name, arguments):
    say(method="notifications/progress", params={"progress": 1})
    ping, roots = ask("ping"), ask("roots/list")
    return text(f"{ping['id']} {ping['result']} {roots['error']['code']}")
)"),
            "mine {} -32601");
}

TEST_F(McpClientTest, AnAnswerMayHaveSeveralPartsOrNone) {
  EXPECT_EQ(answer(R"(
def call(name, arguments): return {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": ""},
    {"type": "resource", "resource": {"uri": "x", "text": "b"}}]}
)")
                .text,
            "a\n[image]\nb");
  EXPECT_EQ(answer("def call(name, arguments): return {\"structuredContent\": {\"sum\": 5}}\n").text, R"({"sum":5})");
  EXPECT_EQ(answer("def call(name, arguments): return {}\n").text, "");
}

TEST_F(McpClientTest, AnAnswerThatIsNoneOfTheProtocolHasFailed) {
  for (const std::string content : {"'x'", "[3]", "[{'type': 'text'}]", "[{'type': 'text', 'text': 5}]"}) {
    const ToolAnswer told = answer("def call(name, arguments): return {'content': " + content + "}\n");
    EXPECT_EQ(told.text, "error: the answer of the tool is none of its protocol") << content;
    EXPECT_TRUE(told.failed) << content;
  }
}

TEST_F(McpClientTest, AnErrorThatTheServerTellsIsAnAnswer) {
  ToolAnswer told = answer("def call(name, arguments): return {**text('no numbers'), 'isError': True}\n");
  EXPECT_EQ(told.text, "no numbers");
  EXPECT_TRUE(told.failed);
  told = answer("def call(name, arguments): say(id=2, error={'code': -32602, 'message': 'no such tool'})\n");
  EXPECT_EQ(told.text, "error: no such tool");
  EXPECT_TRUE(told.failed);
}

TEST_F(McpClientTest, AServerThatDiesIsAnErrorWithItsCommandAndTheEndOfItsStderr) {
  for (const std::string when : {"initialize(params)", "list_tools(params)", "call(name, arguments)"}) {
    EXPECT_THAT(fate("def " + when + ":\n    print('no marbles left', file=sys.stderr, flush=True)\n    os._exit(3)\n"),
                AllOf(HasSubstr("tool server \"python3 -S server.py\": it exited with code 3"), HasSubstr("no marbles left")));
  }
  EXPECT_THAT(fate("1 / 0\n"), HasSubstr("ZeroDivisionError"));
}

TEST_F(McpClientTest, AServerThatHangsOrTalksWithoutEndIsNotWaitedFor) {
  for (const std::string when : {"initialize(params)", "call(name, arguments)"}) {
    EXPECT_THAT(fate("def " + when + ": time.sleep(1000)\n", milliseconds(400)), HasSubstr("it did not answer in time"));
  }
  EXPECT_THAT(fate("def call(name, arguments):\n    while True: say(method='notifications/progress')\n", milliseconds(400)),
              HasSubstr("it did not answer in time"));
  EXPECT_THAT(fate("def call(name, arguments):\n    while True: sys.stdout.write('x' * 65536)\n"),
              HasSubstr("more than 16 MiB without an end of a line"));
}

TEST_F(McpClientTest, AServerThatAnswersRubbishIsAnErrorThatShowsIt) {
  const auto said = [this](const std::string& line) {
    return fate("def call(name, arguments): print(" + line + ", flush=True)\n");
  };
  EXPECT_THAT(said("'debug: 3'"), HasSubstr("a line that is no JSON-RPC message: \"debug: 3\""));
  EXPECT_THAT(said("'[1]'"), HasSubstr("no JSON-RPC message"));
  EXPECT_THAT(said("'\"\\\\ud800\"'"), HasSubstr("invalid string: surrogate"));
  EXPECT_THAT(said("'[' * 100000"), HasSubstr("no JSON-RPC message"));
  EXPECT_THAT(said("'\\x1b[2J'"), HasSubstr("\\u001B[2J"));
  EXPECT_THAT(fate("def call(name, arguments): say(id=99, result={})\n"), HasSubstr("it answered what nobody asked"));
  EXPECT_THAT(fate("def call(name, arguments): say(id=3, result=4)\n"), HasSubstr("its reply to tools/call has no result"));
  EXPECT_THAT(fate("def initialize(params): return {}\n"), HasSubstr("names no protocolVersion"));
  EXPECT_THAT(fate("def list_tools(params): return {'tools': 3}\n"), HasSubstr("has no list of tools"));
  EXPECT_THAT(fate("def list_tools(params): return {'tools': [{}]}\n"), HasSubstr("a tool without a name"));
  EXPECT_THAT(fate("def list_tools(params): return {'tools': [{**tool('f'), 'inputSchema': 3}]}\n"),
              HasSubstr("the inputSchema of its tool \"f\" is no object"));
}

TEST_F(McpClientTest, AProgramThatIsNotThereIsAnError) {
  EXPECT_THAT([&] { McpClient({.command = {"no-such-program-here"}, .folder = {}}, soon()); },
              ThrowsMessage<UserError>(HasSubstr("no-such-program-here")));
}

}  // namespace
}  // namespace sluice::nodes::mcp_client_test
