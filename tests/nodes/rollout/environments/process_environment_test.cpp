#include "nodes/rollout/environments/process_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::process_environment_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ProcessEnvironmentParams shell(const std::string& script) {
  ProcessEnvironmentParams params;
  params.command = {"/bin/sh", "-c", script};
  return params;
}

Reply reply_of(const std::string& script) { return ProcessEnvironment(shell(script)).reply({}); }

const Turn kTurn{.prompt = "2+2=",
                 .label = "4",
                 .transcript = "is it \"3\"?\nno\n5",
                 .last = "5",
                 .index = 1,
                 .iteration = 7,
                 .group = 3,
                 .sample = 2};

TEST(ProcessEnvironment, EachTurnIsALineAndSoIsEachReply) {
  const TemporaryFolder folder;
  folder.write("env.py", R"(
import json, sys
for count, line in enumerate(sys.stdin):
    print(json.dumps({"id": json.loads(line)["id"], "text": f"{count} " + line.strip(), "reward": 0.5}), flush=True)
)");
  ProcessEnvironmentParams params;
  params.command = {"python3", "env.py"};
  params.folder = folder.path();
  const ProcessEnvironment environment(params);
  const std::string seen = R"("prompt":"2+2=","label":"4","transcript":"is it \"3\"?\nno\n5","last":"5","turn":1,)"
                           R"("iteration":7,"group":3,"sample":2})";
  for (const std::string count : {"0 ", "1 "}) {  // of one process
    const Reply reply = environment.reply(kTurn);
    EXPECT_EQ(reply.text, count + "{\"id\":" + count.front() + "," + seen);
    EXPECT_FALSE(reply.done);
    EXPECT_EQ(reply.reward, 0.5);
  }
}

TEST(ProcessEnvironment, KeysOfAReplyMayBeLeftOut) {
  const Reply nothing = reply_of("read line; echo '{\"id\": 0}'");
  EXPECT_EQ(nothing.text, "");
  EXPECT_FALSE(nothing.done);
  EXPECT_FALSE(nothing.reward.has_value());
  EXPECT_TRUE(reply_of("read line; echo '{\"id\": 0, \"done\": true, \"reward\": null}'").done);
}

TEST(ProcessEnvironment, ALineThatIsNoReplyIsAnErrorThatShowsIt) {
  const auto error_of = [](const std::string& reply) { return [reply] { reply_of("read line; echo '" + reply + "'"); }; };
  EXPECT_THAT(error_of("debug: 3"), ThrowsMessage<UserError>(HasSubstr("its reply is no JSON: \"debug: 3\"")));
  EXPECT_THAT(error_of("[1]"), ThrowsMessage<UserError>(HasSubstr("its reply is no JSON object: \"[1]\"")));
  EXPECT_THAT(error_of("{\"id\": 0, \"txt\": \"\"}"), ThrowsMessage<UserError>(HasSubstr("its reply has a key \"txt\"")));
  EXPECT_THAT(error_of("{\"id\": 0, \"done\": 1}"), ThrowsMessage<UserError>(HasSubstr("\"done\" = 1, expected true or false")));
  EXPECT_THAT(error_of("{\"id\": 0, \"text\": null}"), ThrowsMessage<UserError>(HasSubstr("\"text\" = null, expected a string")));
}

TEST(ProcessEnvironment, AProcessThatDiesIsAnErrorWithTheEndOfItsStderr) {
  EXPECT_THAT([] { reply_of("read line; echo 'no marbles left' >&2; exit 3"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("environment process \"/bin/sh -c"),
                                             HasSubstr("exited with code 3 before it replied"), HasSubstr("no marbles left"))));
  EXPECT_THAT([] { reply_of("kill -9 $$"); }, ThrowsMessage<UserError>(HasSubstr("was killed by signal 9")));
}

TEST(ProcessEnvironment, LinesOfAStderrStayLines) {
  EXPECT_THAT(
      [] { reply_of("read line; printf 'Traceback:\\n  File env.py\\nValueError: boom\\n' >&2; exit 1"); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("ends with:\n          Traceback:\n            File env.py\n          ValueError"),
                                     ::testing::Not(HasSubstr("\\n          ")))));
}

TEST(ProcessEnvironment, AProcessThatHangsIsAnErrorWithItsStderr) {
  ProcessEnvironmentParams params = shell("read line; echo '{\"id\": 0}'; echo 'counting marbles' >&2; sleep 1000");
  params.timeout_seconds = 0.3;
  const ProcessEnvironment environment(params);
  environment.reply({});
  EXPECT_THAT([&] { environment.reply({}); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("it did not reply within 0.3 seconds\n"), HasSubstr("counting marbles"))));
}

TEST(ProcessEnvironment, OneThatHangsWhileItStartsIsAnErrorThatSaysSo) {
  ProcessEnvironmentParams params = shell("echo 'looking for marbles' >&2; sleep 1000");
  params.timeout_seconds = 0.1;
  params.start_timeout_seconds = 1;
  EXPECT_THAT(
      [&] { ProcessEnvironment(params).reply({}); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("it did not reply within 1.0 + 0.1 seconds of its start"),
                                     HasSubstr("looking for marbles"), HasSubstr("help: "), HasSubstr("start_timeout_seconds"))));
}

TEST(ProcessEnvironment, TheFirstReplyOfEachProcessMayTakeItsStartLonger) {
  ProcessEnvironmentParams params = shell("sleep 0.4; read line; echo '{\"id\": 0}'");
  params.timeout_seconds = 0.1;
  params.start_timeout_seconds = 60;
  const ProcessEnvironment environment(params);
  for (int process = 0; process < 2; ++process) {
    EXPECT_NO_THROW(environment.reply({}));
    siginfo_t ended;  // as it does after its reply: it is left to be found, or has been
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
      ASSERT_EQ(errno, ECHILD);
    }
  }
}

// Its limit would be reached in a quarter of an hour.
TEST(ProcessEnvironment, AReplyThatNobodyNeedsIsNotWaitedForAndTheNextTurnGetsAnotherProcess) {
  const TemporaryFolder folder;
  ProcessEnvironmentParams params = shell("read line; if [ -e slow ]; then touch asked; sleep 1000; fi; echo '{\"id\": 0}'");
  params.folder = folder.path();
  params.timeout_seconds = 900;
  const ProcessEnvironment environment(params);
  folder.write("slow", "");
  engine::OutsideWork work;
  const std::jthread dropper([&] {
    while (!is_there(folder.path() / "asked")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work.drop_behind(6);
  });
  Turn turn = kTurn;
  turn.wait = {&work, turn.iteration};
  EXPECT_THROW(environment.reply(turn), engine::WorkDropped);
  EXPECT_GT(work.looks(), 0) << "nobody learns that it waits";
  std::filesystem::remove(folder.path() / "slow");
  turn.wait = {&work, 6};
  EXPECT_EQ(environment.reply(turn).text, "");
}

TEST(ProcessEnvironment, AProgramThatIsNotThereIsAnError) {
  ProcessEnvironmentParams params;
  params.command = {"no-such-program-here"};
  EXPECT_THAT([&] { ProcessEnvironment(params).reply({}); }, ThrowsMessage<UserError>(HasSubstr("no-such-program-here")));
}

TEST(ProcessEnvironment, ALineThatNobodyAskedForIsAnError) {
  const ProcessEnvironment environment(
      shell("id=0; while read line; do printf '{\"id\": %d}\\n{\"id\": %d}\\n' $id $id; id=$((id + 1)); done"));
  const auto some_turns = [&] {
    for (int turn = 0; turn < 100; ++turn) environment.reply({});
  };
  EXPECT_THAT(some_turns, ThrowsMessage<UserError>(AnyOf(HasSubstr("a line that no turn asked for: \"{\\\"id\\\": "),
                                                         HasSubstr("and 1 was asked for"))));
}

// It may come when the next turn has been asked for.
TEST(ProcessEnvironment, AReplyToAnotherTurnIsAnError) {
  const ProcessEnvironment environment(
      shell("read line; echo '{\"id\": 0, \"reward\": 1}'; read line; echo '{\"id\": 0, \"reward\": 31}'; echo '{\"id\": 1}'; "
            "read line"));
  EXPECT_EQ(environment.reply({}).reward, 1);
  EXPECT_THAT(
      [&] { environment.reply({}); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("its reply is to the turn with id 0, and 1 was asked for"), HasSubstr("help: "))));
  EXPECT_THAT([] { reply_of("read line; echo '{\"done\": true}'"); },
              ThrowsMessage<UserError>(HasSubstr("its reply has no \"id\": ")));
}

TEST(ProcessEnvironment, BrokenCharactersOfATurnAreReplaced) {
  EXPECT_EQ(request_line(7, {.prompt = "\xC3", .label = {}, .transcript = {}, .last = {}}).substr(0, 25),
            "{\"id\":7,\"prompt\":\"\uFFFD\",\"l");
}

}  // namespace
}  // namespace sluice::nodes::process_environment_test
