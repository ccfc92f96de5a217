#include "nodes/rollout/environments/tool_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "tests/nodes/rollout/environments/tool_server_script.h"

namespace sluice::nodes::tool_servers_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Json kTwoAndThree = {{"a", 2}, {"b", 3}};

class ToolServersTest : public ::testing::Test {
 protected:
  ToolServers servers(const std::string& changes) { return ToolServers({testing::tool_server_in(folder_, changes)}, minutes(1)); }

  static std::string call(ToolServers& servers, const std::string& tool = "add", milliseconds time = minutes(1)) {
    return servers.call(tool, kTwoAndThree, Subprocess::Clock::now() + time).text;
  }

  const TemporaryFolder folder_;
};

const std::string kMultiply =
    "def list_tools(params): return {'tools': [tool('multiply')]}\n"
    "def call(name, arguments): return text(f\"{arguments['a'] * arguments['b']}\")\n";

TEST_F(ToolServersTest, EachToolIsCalledAtItsServer) {
  ToolServers servers({testing::tool_server_in(folder_), testing::tool_server_in(folder_, kMultiply, "other.py")}, minutes(1));
  EXPECT_EQ(call(servers), "5");
  EXPECT_EQ(call(servers, "multiply"), "6");
  EXPECT_EQ(call(servers, "divide"), "error: there is no tool \"divide\", the tools are add, multiply");
}

TEST_F(ToolServersTest, AToolThatTwoServersHaveIsAnErrorThatNamesBoth) {
  ToolServers servers({testing::tool_server_in(folder_), testing::tool_server_in(folder_, {}, "other.py")}, minutes(1));
  EXPECT_THAT([&] { servers.list(); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("\"python3 -S server.py\" and \"python3 -S other.py\""),
                                             HasSubstr("both have a tool \"add\""))));
}

TEST_F(ToolServersTest, AToolThatOneServerHasTwiceIsAnError) {
  ToolServers servers = this->servers("def list_tools(params): return {'tools': [tool('add'), tool('add')]}\n");
  EXPECT_THAT([&] { servers.list(); },
              ThrowsMessage<UserError>(HasSubstr("the tool server \"python3 -S server.py\" has two tools \"add\"")));
}

TEST_F(ToolServersTest, AServerWithoutToolsIsAnError) {
  ToolServers servers = this->servers("def list_tools(params): return {'tools': []}\n");
  EXPECT_THAT([&] { servers.list(); }, ThrowsMessage<UserError>(HasSubstr("it has no tools")));
}

TEST_F(ToolServersTest, AnAnswerThatNobodyNeedsIsNotWaitedFor) {
  ToolServers servers = this->servers("def call(name, arguments): time.sleep(1000)\n");
  engine::OutsideWork work;
  servers.list();
  work.drop_behind(6);
  const AnswerWait wait(Subprocess::Clock::now() + minutes(15), {&work, 7});
  EXPECT_THROW(servers.call("add", kTwoAndThree, wait), engine::WorkDropped);
}

TEST_F(ToolServersTest, AServerThatFailedIsAnAnswerAndIsStartedAgain) {
  // The first process dies at its first call, the second hangs, the third answers.
  ToolServers servers = this->servers(R"(
starts = len(os.listdir("."))
open(f"start{starts}", "w").close()
def call(name, arguments):
    if starts == 1: os._exit(3)
    if starts == 2: time.sleep(1000)
    return text("5")
)");
  const ToolAnswer broken = servers.call("add", kTwoAndThree, Subprocess::Clock::now() + minutes(1));
  EXPECT_EQ(broken.text, "error: the tool broke off without an answer");
  EXPECT_THAT(broken.breakdown, HasSubstr("tool server \"python3 -S server.py\": it exited with code 3"));
  EXPECT_EQ(broken.server, 0u);
  EXPECT_EQ(call(servers, "add", milliseconds(300)), "error: the tool did not answer in time");
  EXPECT_EQ(call(servers), "5");
  EXPECT_EQ(call(servers), "5");
}

TEST_F(ToolServersTest, OnlyWhatIsNoAnswerIsABreakdown) {
  const auto breakdown = [this](const std::string& changes) {
    ToolServers servers = this->servers(changes);
    return servers.call("add", kTwoAndThree, Subprocess::Clock::now() + minutes(1)).breakdown;
  };
  EXPECT_EQ(breakdown({}), "");
  EXPECT_EQ(breakdown("def call(name, arguments): return {**text('no numbers'), 'isError': True}\n"), "");
  EXPECT_EQ(breakdown("def call(name, arguments): say(id=3, error={'code': -32602, 'message': 'no'})\n"), "");
  EXPECT_THAT(breakdown("def call(name, arguments): return [1]\n"), HasSubstr("its reply to tools/call has no result"));
  EXPECT_THAT(breakdown("def call(name, arguments): return {'content': 3}\n"), HasSubstr("its answer is none of the protocol"));
  EXPECT_THAT(breakdown("def call(name, arguments): say(id='3', result=text('5'))\n"),
              HasSubstr("it answered what nobody asked"));
}

TEST_F(ToolServersTest, WhatAServerStartedEndsWithIt) {
  {
    ToolServers servers = this->servers(R"(
import subprocess
child = subprocess.Popen(["sleep", "1000"])
open("child", "w").write(str(child.pid))
)");
    EXPECT_EQ(call(servers), "5");
  }
  const std::string status = "/proc/" + read_file(folder_.path() / "child") + "/stat";
  const auto is_gone = [&] {  // or a zombie, whose parent is not this process
    try {
      return read_file(status).find(") Z ") != std::string::npos;
    } catch (const UserError&) {
      return true;
    }
  };
  for (int moment = 0; moment < 1000 && !is_gone(); ++moment) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_TRUE(is_gone());
}

}  // namespace
}  // namespace sluice::nodes::tool_servers_test
