#include "nodes/scorers/python/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::worker_pool_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

WorkerPoolOptions shell(const std::string& script, size_t workers = 1) {
  WorkerPoolOptions options;
  options.command.arguments = {"/bin/sh", "-c", script};
  options.workers = workers;
  return options;
}

std::vector<std::string> lines(const std::vector<WorkerReply>& replies) {
  std::vector<std::string> all;
  for (const WorkerReply& reply : replies) all.push_back(reply.failure.empty() ? reply.line : "! " + reply.failure);
  return all;
}

std::vector<std::string> ask(WorkerPool& pool, std::vector<std::string> requests) { return lines(pool.ask(requests)); }

constexpr const char* kEcho = "echo ready; while read line; do echo \"$line!\"; done";

TEST(WorkerPool, RepliesAreInTheOrderOfTheRequests) {
  WorkerPool pool(shell("echo ready; while read t; do sleep $t; echo $t; done", 3));
  EXPECT_THAT(ask(pool, {"0.2", "0", "0.1", "0", "0.05"}), ElementsAre("0.2", "0", "0.1", "0", "0.05"));
}

TEST(WorkerPool, NoRequestsAreNoReplies) {
  WorkerPool pool(shell(kEcho));
  EXPECT_TRUE(ask(pool, {}).empty());
  EXPECT_THAT(ask(pool, {"a"}), ElementsAre("a!"));
}

TEST(WorkerPool, CrashFailsItsRequestAndTheNextOneIsAnswered) {
  WorkerPool pool(shell("echo ready; while read line; do [ $line = bad ] && { echo oh no >&2; exit 3; }; echo \"$line!\"; done"));
  EXPECT_THAT(ask(pool, {"a", "bad", "b"}), ElementsAre("a!", AllOf(HasSubstr("exited with code 3"), HasSubstr("oh no")), "b!"));
}

TEST(WorkerPool, HangFailsItsRequestAndTheNextOneIsAnswered) {
  WorkerPoolOptions options = shell("echo ready; while read line; do [ $line = bad ] && sleep 1000; echo \"$line!\"; done");
  options.timeout = milliseconds(1000);
  WorkerPool pool(options);
  EXPECT_THAT(ask(pool, {"bad", "b"}), ElementsAre(HasSubstr("did not answer within 1.0 s and was killed"), "b!"));
}

TEST(WorkerPool, WorkerThatEndedWhileIdleFailsNoRequest) {
  WorkerPool pool(shell("echo ready; read line; echo \"$line!\""));  // one request, and it ends
  EXPECT_THAT(ask(pool, {"a"}), ElementsAre("a!"));
  siginfo_t ended;  // until it has: the pool is left to find it, or has found it
  if (::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
    ASSERT_EQ(errno, ECHILD);
  }
  EXPECT_THAT(ask(pool, {"b"}), ElementsAre("b!"));
}

// The run drops the iteration that it is for; whoever works on it is killed, and another takes its place.
TEST(WorkerPool, WhatIsNotNeededAnyMoreIsGivenUp) {
  WorkerPool pool(shell("echo ready; while read t; do sleep $t; echo $t; done", 2));
  engine::OutsideWork work;
  std::jthread drops([&work] {
    while (work.looks() < 2) std::this_thread::sleep_for(milliseconds(1));
    work.drop_behind(3);
  });
  const std::vector<std::string> long_ones{"1000", "1000", "1000"};
  EXPECT_THROW(pool.ask(long_ones, [](size_t, const std::string&) {}, {&work, 4}), engine::WorkDropped);
  const std::vector<std::string> short_ones{"0", "0"};
  EXPECT_THAT(lines(pool.ask(short_ones, [](size_t, const std::string&) {}, {&work, 3})), ElementsAre("0", "0"));
}

TEST(WorkerPool, WorkerThatIsNeverReadyIsRefused) {
  WorkerPoolOptions options = shell("sleep 1000");
  options.start_timeout = milliseconds(50);
  EXPECT_THAT(message_of<UserError>([&] { WorkerPool{options}; }), HasSubstr("was not ready within"));
  EXPECT_THAT(message_of<UserError>([] { WorkerPool{shell("echo no luck >&2; exit 2")}; }),
              AllOf(HasSubstr("exited with code 2"), HasSubstr("no luck")));
}

TEST(WorkerPool, GreetingIsChecked) {
  WorkerPoolOptions options = shell(kEcho);
  options.greeted = [](const std::string& greeting) { throw UserError("it said " + greeting); };
  EXPECT_THAT(message_of<UserError>([&] { WorkerPool{options}; }), HasSubstr("it said ready"));
}

TEST(WorkerPool, ReplyWithoutEndIsStopped) {
  WorkerPoolOptions options = shell("echo ready; read line; while true; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
  options.command.most_output = 10'000;
  WorkerPool pool(options);
  EXPECT_THAT(ask(pool, {"a"}), ElementsAre(HasSubstr("wrote a line of more than 10.0 kB")));
}

}  // namespace
}  // namespace sluice::nodes::worker_pool_test
