#include "cli/launch/launch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/text/strings.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::launch_test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kLong{60};  // never reached unless something hangs

std::string content_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

bool wait_for(const std::function<bool()>& condition) {
  for (const auto until = std::chrono::steady_clock::now() + kLong; std::chrono::steady_clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

// "R", "S", "T", "Z": as /proc/PID/stat has it; empty: there is no such process.
std::string state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  file >> id >> name >> state;
  return state;
}

/// A process that launches ranks of a shell script, in which FOLDER is that of the test.
class Launched : public ::testing::Test {
 protected:
  void TearDown() override {
    if (launcher_ <= 0) return;
    ::kill(launcher_, SIGKILL);
    ::kill(launcher_, SIGCONT);
    ::waitpid(launcher_, nullptr, 0);
  }

  void start(int ranks, const std::string& script, LaunchOptions options = {}) {
    options.words = {"/bin/sh", "-c", "FOLDER='" + folder_.path().string() + "'; " + script, "sh", "a b", "$x"};
    options.ranks = ranks;
    launcher_ = ::fork();
    ASSERT_GE(launcher_, 0);
    if (launcher_ == 0) ::_exit(launch(options));
  }

  /// The exit code of the launcher, or -1.
  int wait() {
    int status = 0;
    if (!wait_for([&] { return ::waitpid(launcher_, &status, WNOHANG) == launcher_; })) return -1;
    launcher_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int run(int ranks, const std::string& script, const LaunchOptions& options = {}) {
    start(ranks, script, options);
    return wait();
  }

  pid_t launcher() const { return launcher_; }
  void send(int signal) { ASSERT_EQ(::kill(launcher_, signal), 0); }
  std::string file(const std::string& name) const { return content_of(folder_.path() / name); }
  std::string out() const { return file("out"); }
  std::string errors() const { return file("errors"); }
  std::vector<std::string> error_lines() const { return split(std::string(trim(errors())), '\n'); }

  bool wait_for_file(const std::string& name, const std::string& content) const {
    return wait_for([&] { return file(name) == content; });
  }
  bool wait_for_error(const std::string& text) const {
    return wait_for([&] { return errors().find(text) != std::string::npos; });
  }

  /// The processes of two ranks that write their numbers into files.
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    for (const char* name : {"pid0", "pid1"}) {
      EXPECT_TRUE(wait_for([&] { return file(name).ends_with("\n"); }));
      found.push_back(std::atoi(file(name).c_str()));
    }
    return found;
  }

  const TemporaryFolder folder_;

 private:
  int launch(const LaunchOptions& options) const {
    for (const auto& [name, descriptor] : {std::pair{"out", STDOUT_FILENO}, {"errors", STDERR_FILENO}})
      ::dup2(::open((folder_.path() / name).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), descriptor);
    try {
      return Launch(options).wait();
    } catch (const UserError& error) {
      std::fputs(error.what(), stderr);
      return 78;
    }
  }

  pid_t launcher_ = -1;
};

// Ends when the test writes the file "go"; `at_signal` is what is done for SIGINT and SIGTERM.
std::string waits_with(const std::string& at_int, const std::string& at_term = "") {
  return "trap '" + at_int + "' INT; " + (at_term.empty() ? "" : "trap '" + at_term + "' TERM; ") +
         "echo $$ > \"$FOLDER/pid$RANK\"; while ! [ -e \"$FOLDER/go\" ]; do sleep 0.01; done; ";
}

// Until the process has ended that has written its number.
std::string until_gone(const std::string& rank) {
  const std::string file = "\"$FOLDER/pid" + rank + "\"";
  return "while ! [ -s " + file + " ] || kill -0 $(cat " + file + ") 2> /dev/null; do sleep 0.01; done; ";
}

// Nobody else misses it, and it would never end.
TEST_F(Launched, ARankThatIsStoppedWhenAllOthersHaveEndedIsKilled) {
  EXPECT_EQ(run(2, "[ $RANK = 1 ] || kill -STOP $$", {.notice = milliseconds(300)}), 137);
  EXPECT_THAT(errors(), MatchesRegex("rank 0 \\(pid [0-9]+\\) is stopped, and all others have ended: it is killed\n"
                                     "rank 0 \\(pid [0-9]+\\) was killed by signal 9 \\(KILL\\)\n"));
}

// Rank 0 ends last, else the others would have the notice alone to end.
TEST_F(Launched, RanksThatAreAllStoppedMayGoOn) {
  start(2, "echo $$ > \"$FOLDER/pid$RANK\"; kill -STOP $$; [ $RANK = 1 ] || { " + until_gone("1") + "}",
        {.notice = milliseconds(100)});
  const std::vector<pid_t> ranks = pids();
  for (const pid_t rank : ranks) EXPECT_TRUE(wait_for([&] { return state_of(rank) == "T"; }));
  std::this_thread::sleep_for(milliseconds(400));
  for (const pid_t rank : ranks) {
    ::kill(rank, SIGCONT);
    EXPECT_TRUE(wait_for([&] { return state_of(rank) != "T"; }));
  }
  EXPECT_EQ(wait(), 0);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Launched, EveryRankIsToldItsPlace) {
  const std::string script = "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT";
  EXPECT_EQ(run(3, script, {.port = 4321}), 0);
  EXPECT_EQ(out(), "0/3 0/3 127.0.0.1:4321\n");
  EXPECT_THAT(error_lines(), UnorderedElementsAre("[rank 1] 1/3 1/3 127.0.0.1:4321", "[rank 2] 2/3 2/3 127.0.0.1:4321"));
}

TEST_F(Launched, RanksMeetAtAFreePortUnlessOneIsNamed) {
  EXPECT_EQ(run(2, "echo $MASTER_PORT"), 0);
  EXPECT_GT(std::stoi(out()), 0);
  EXPECT_EQ(errors(), "[rank 1] " + out());
}

TEST_F(Launched, ArgumentsReachEveryRankAsTheyAre) {
  EXPECT_EQ(run(2, "printf '%s|' \"$@\"; echo"), 0);
  EXPECT_EQ(out(), "a b|$x|\n");
  EXPECT_EQ(errors(), "[rank 1] a b|$x|\n");
}

TEST_F(Launched, RankZeroWritesWhereTheLauncherDoesAndReadsNothing) {
  EXPECT_EQ(run(2, "[ $RANK = 0 ] || exit 0; cat; printf 'no end'; printf 'an error' >&2"), 0);
  EXPECT_EQ(out(), "no end");
  EXPECT_EQ(errors(), "an error");
}

TEST_F(Launched, BothOutputsOfAnotherRankComeInOrder) {
  EXPECT_EQ(run(2, "[ $RANK = 1 ] || exit 0; echo one; echo two >&2; echo; printf three"), 0);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(errors(), "[rank 1] one\n[rank 1] two\n[rank 1] \n[rank 1] three\n");
}

// Rank 0 writes by itself where the launcher does, so it has to write whole lines.
TEST_F(Launched, LinesOfRanksAreNeverMixed) {
  const std::string line = "if [ $RANK = 0 ]; then echo 0 begin; else printf \"$RANK be\"; echo gin; fi";
  const std::string script = "i=0; while [ $i -lt 500 ]; do " + line + "; i=$((i+1)); done >&2";
  EXPECT_EQ(run(4, script), 0);
  std::vector<int> lines(4);
  for (const std::string& line : error_lines()) {
    if (line == "0 begin") {
      ++lines[0];
    } else {
      ASSERT_THAT(line, MatchesRegex("\\[rank [1-3]\\] [1-3] begin"));
      ASSERT_EQ(line[6], line[9]);
      ++lines[static_cast<size_t>(line[6] - '0')];
    }
  }
  EXPECT_THAT(lines, Each(500));
}

TEST_F(Launched, ALineWithoutEndIsPrintedInPieces) {
  EXPECT_EQ(run(2, "[ $RANK = 0 ] || head -c 3000000 /dev/zero | tr '\\0' x"), 0);
  size_t count = 0;
  for (const std::string& line : error_lines()) {
    EXPECT_THAT(line.substr(0, 10), ::testing::StrEq("[rank 1] x"));
    count += line.size() - std::string("[rank 1] ").size();
  }
  EXPECT_EQ(count, 3'000'000u);
}

TEST_F(Launched, TheFirstBadEndIsToldAndIsTheExitCode) {
  EXPECT_EQ(run(3, "[ $RANK = 1 ] && exit 3; while true; do sleep 0.01; done", {.notice = milliseconds(50)}), 3);
  EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank 1 \\(pid [0-9]+\\) exited with code 3"),
                                         "the other ranks have not ended: they are asked to"));
}

// They would wait for it until their time to join is over.
TEST_F(Launched, WithoutARankBeforeTheRunBeginsTheOthersAreAskedSoon) {
  const LaunchOptions not_begun{.has_begun = [](int64_t) { return false; }, .notice = 2 * kLong};
  for (const std::string bad : {"0", "1"}) {
    folder_.write("errors", "");
    EXPECT_EQ(run(2, "[ $RANK = " + bad + " ] && exit 78; while true; do sleep 0.01; done", not_begun), 78);
    EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank " + bad + " \\(pid [0-9]+\\) exited with code 78"),
                                           "the other ranks have not ended: they are asked to"));
  }
}

// The others ended because of that, before rank 0 had said it.
TEST_F(Launched, WhatRank0SaysOfAPipelineIsTheExitCode) {
  start(2, "[ $RANK = 1 ] && exit 1; while [ ! -e \"$FOLDER/told\" ]; do sleep 0.01; done; exit 78", {.notice = kLong});
  ASSERT_TRUE(wait_for_error("exited with code 1"));
  folder_.write("told", "");
  EXPECT_EQ(wait(), 78);
}

TEST_F(Launched, EachKilledRankIsNamed) {
  const std::string script = "[ $RANK = 0 ] || { echo $$ > \"$FOLDER/pid$RANK\"; kill -KILL $$; }; ";
  EXPECT_EQ(run(3, script + until_gone("1") + until_gone("2") + "exit 1", {.notice = kLong}), 137);
  EXPECT_THAT(errors(), ::testing::ContainsRegex("rank 1 \\(pid [0-9]+\\) was killed by signal 9"));
  EXPECT_THAT(errors(), ::testing::ContainsRegex("rank 2 \\(pid [0-9]+\\) was killed by signal 9"));
}

TEST_F(Launched, AKilledRankEndsAll) {
  EXPECT_EQ(run(2, "[ $RANK = 1 ] && kill -KILL $$; while true; do sleep 0.01; done", {.notice = milliseconds(50)}), 137);
  EXPECT_THAT(errors(), ::testing::ContainsRegex("^rank 1 \\(pid [0-9]+\\) was killed by signal 9 \\(KILL\\)\n"));
}

LaunchOptions not_begun() {
  return {.expendable = {.first = 1, .count = 1}, .restarts = 1, .has_begun = [](int64_t) { return false; }};
}

// The others wait for that process, and would not take another one for it.
TEST_F(Launched, WhereARankIsLostBeforeTheRunHasBegunAllAreStartedAgain) {
  const std::string script =
      "echo >> \"$FOLDER/began$RANK\"; [ $RANK = 1 ] && ! [ -e \"$FOLDER/lost\" ] && { : > \"$FOLDER/lost\"; kill "
      "-KILL $$; }; while [ $(wc -l < \"$FOLDER/began0\") -lt 2 ]; do sleep 0.01; done";
  EXPECT_EQ(run(2, script, not_begun()), 0);
  EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank 1 \\(pid [0-9]+\\) was killed by signal 9 \\(KILL\\) before the run "
                                                      "has begun: nothing was run, and all ranks are started again")));
}

TEST_F(Launched, WhereARankIsLostTooOftenBeforeTheRunHasBegunAllAreEnded) {
  EXPECT_EQ(run(2, "[ $RANK = 1 ] && kill -KILL $$; while true; do sleep 0.01; done", not_begun()), 137);
  EXPECT_THAT(error_lines(), ElementsAre(HasSubstr("all ranks are started again"),
                                         MatchesRegex("rank 1 \\(pid [0-9]+\\) was killed by signal 9 \\(KILL\\) before the run "
                                                      "has begun: nothing was run, and the other ranks are ended")));
}

TEST_F(Launched, NothingIsStartedAgainAfterCtrlC) {
  start(2, waits_with("[ $RANK = 1 ] && kill -KILL $$; true") + "exit 130", not_begun());
  pids();
  send(SIGINT);
  EXPECT_NE(wait(), 0);
  EXPECT_THAT(errors(), ::testing::Not(HasSubstr("started again")));
}

TEST_F(Launched, OneThatIsLostLaterIsStartedAgain) {
  const LaunchOptions options{.expendable = {.first = 1, .count = 2}, .restarts = 1, .has_begun = [](int64_t) { return true; }};
  const std::string script =
      "if [ $RANK = 1 ]; then [ -e \"$FOLDER/lost\" ] || { : > \"$FOLDER/lost\"; kill -KILL $$; }; echo $$ > \"$FOLDER/pid1\"; "
      "exit; fi; " +
      until_gone("1");
  EXPECT_EQ(run(3, script, options), 0);
  EXPECT_THAT(error_lines(), ElementsAre(HasSubstr("its role is elastic, and the others go on; it is started again")));
}

// Rank 1 of three, of which 1 and 2 may be lost, is killed once and started again; then it does `when_back`.
LaunchOptions two_may_be_lost() { return {.expendable = {.first = 1, .count = 2}, .restarts = 1}; }
std::string comes_back_and(const std::string& when_back) {
  return "if [ $RANK = 1 ]; then [ -e \"$FOLDER/lost\" ] || { : > \"$FOLDER/lost\"; kill -KILL $$; }; : > \"$FOLDER/back\"; " +
         when_back + "; fi; while ! [ -e \"$FOLDER/back\" ]; do sleep 0.01; done; ";
}

// It was not in the run, or would have been waited for.
TEST_F(Launched, OneThatComesBackTooLateIsEndedWithTheRunAndCountsForNothing) {
  EXPECT_EQ(run(3, comes_back_and("while true; do sleep 0.01; done"), two_may_be_lost()), 0);
  EXPECT_THAT(
      error_lines(),
      ElementsAre(HasSubstr("it is started again"),
                  MatchesRegex("rank 1 \\(pid [0-9]+\\) was started again, and has not ended with the run: it is ended")));
}

TEST_F(Launched, BehindRankZeroNoOtherGoesOn) {
  const std::string script = "echo $$ > \"$FOLDER/pid$RANK\"; " + comes_back_and(until_gone("0") + "exit 78") +
                             "[ $RANK = 0 ] || { " + until_gone("0") + until_gone("1") + "}";
  EXPECT_EQ(run(3, script, two_may_be_lost()), 0);
  EXPECT_THAT(error_lines(), ElementsAre(HasSubstr("it is started again"),
                                         MatchesRegex("rank 1 \\(pid [0-9]+\\) exited with code 78: its role is elastic, and the "
                                                      "others are ending")));
}

// It was stopped, given up by the others, and wakes when nobody is there any more.
TEST_F(Launched, OneThatMayBeLostAndFailsAfterTheRunCountsForNothing) {
  const std::string script =
      "if [ $RANK = 0 ]; then echo $$ > \"$FOLDER/pid0\"; else " + until_gone("0") + "sleep 0.2; exit 1; fi";
  EXPECT_EQ(run(2, script, {.expendable = {.first = 1, .count = 1}}), 0);
  EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank 1 \\(pid [0-9]+\\) exited with code 1: its role is elastic, and the "
                                                      "others have ended")));
}

TEST_F(Launched, BehindCtrlCNoOtherGoesOn) {
  start(3, waits_with("[ $RANK = 1 ] && kill -KILL $$; true") + "exit 130", two_may_be_lost());
  pids();
  ASSERT_TRUE(wait_for([&] { return file("pid2").ends_with("\n"); }));
  send(SIGINT);
  ASSERT_TRUE(wait_for_error("rank 1"));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 130);
  EXPECT_THAT(error_lines(),
              ElementsAre(HasSubstr("was killed by signal 9 (KILL): its role is elastic, and the others are ending")));
}

TEST_F(Launched, WhatDoesNotEndWhenAskedIsKilled) {
  const std::string script =
      "trap '' TERM; : > \"$FOLDER/ready$RANK\"; "
      "if [ $RANK = 0 ]; then while ! [ -e \"$FOLDER/ready1\" ]; do sleep 0.01; done; exit 4; fi; "
      "while true; do sleep 0.01; done";
  EXPECT_EQ(run(2, script, {.notice = milliseconds(20), .grace = milliseconds(20)}), 4);
  EXPECT_EQ(error_lines().back(), "they still have not: they are killed");
}

TEST_F(Launched, OthersMayEndByThemselvesAfterABadEnd) {
  start(2, "[ $RANK = 1 ] && exit 3; " + waits_with("exit 9", "exit 8") + "echo saved; exit 1", {.notice = kLong});
  ASSERT_TRUE(wait_for_error("exited with code 3"));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 3);
  EXPECT_EQ(out(), "saved\n");
  EXPECT_THAT(error_lines(), ElementsAre(HasSubstr("rank 1")));
}

// Saving may take long.
TEST_F(Launched, OthersAreNotHurriedAfterAGoodEnd) {
  const std::string script = "echo $$ > \"$FOLDER/pid$RANK\"; [ $RANK = 1 ] && exit 0; " + until_gone("1") +
                             "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.03; done; echo saved";
  EXPECT_EQ(run(2, script, {.notice = milliseconds(1), .grace = milliseconds(1)}), 0);
  EXPECT_EQ(out(), "saved\n");
  EXPECT_EQ(errors(), "");
}

TEST_F(Launched, CtrlCIsPassedToEveryRankOnce) {
  start(2, waits_with("echo int >> \"$FOLDER/log$RANK\"") + "exit 130");
  pids();
  send(SIGINT);
  EXPECT_TRUE(wait_for_file("log0", "int\n"));
  EXPECT_TRUE(wait_for_file("log1", "int\n"));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 130);
  EXPECT_EQ(file("log0") + file("log1"), "int\nint\n");
  EXPECT_EQ(errors(), "");
}

TEST_F(Launched, ASecondSignalIsPassedOnToo) {
  start(2, waits_with("echo int >> \"$FOLDER/log$RANK\"", "echo term >> \"$FOLDER/log$RANK\"; exit 143"));
  pids();
  send(SIGINT);
  EXPECT_TRUE(wait_for_file("log0", "int\n"));
  EXPECT_TRUE(wait_for_file("log1", "int\n"));
  send(SIGTERM);
  EXPECT_EQ(wait(), 143);
  EXPECT_EQ(file("log0") + file("log1"), "int\nterm\nint\nterm\n");
}

TEST_F(Launched, WhoEndsBecauseItWasAskedHurriesNobody) {
  start(2, waits_with("[ $RANK = 0 ] || exit 130; echo int > \"$FOLDER/log0\"") + "echo saved; exit 130",
        {.notice = milliseconds(1), .grace = milliseconds(1)});
  const pid_t other = pids()[1];
  send(SIGINT);
  EXPECT_TRUE(wait_for_file("log0", "int\n"));
  EXPECT_TRUE(wait_for([&] { return state_of(other).empty(); }));  // the launcher knows
  folder_.write("go", "");
  EXPECT_EQ(wait(), 130);
  EXPECT_EQ(out(), "saved\n");
}

TEST_F(Launched, ABadEndAfterCtrlCIsStillTold) {
  start(2, waits_with("[ $RANK = 0 ] && exit 130; exit 1"));
  pids();
  send(SIGINT);
  EXPECT_EQ(wait(), 1);
  EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank 1 \\(pid [0-9]+\\) exited with code 1")));
}

// Rank 1 misses rank 0, and its end is seen first.
TEST_F(Launched, WhereRanksMeetAFailureBehindCtrlCMayFollowFromIt) {
  start(2, waits_with("[ $RANK = 1 ] && exit 1; sleep 0.3; exit 130"), {.has_begun = [](int64_t) { return false; }});
  pids();
  send(SIGINT);
  EXPECT_EQ(wait(), 130);
  EXPECT_THAT(errors(), IsEmpty());
}

TEST_F(Launched, WhereRanksMeetAFailureIsToldWhereNoneEndedByCtrlC) {
  start(2, waits_with("exit $RANK"), {.has_begun = [](int64_t) { return false; }});
  pids();
  send(SIGINT);
  EXPECT_EQ(wait(), 1);
  EXPECT_THAT(error_lines(), ElementsAre(MatchesRegex("rank 1 \\(pid [0-9]+\\) exited with code 1")));
}

TEST_F(Launched, ARequestToSaveReachesEveryRank) {
  start(2, "trap 'echo save > \"$FOLDER/log$RANK\"' USR1; " + waits_with("exit 9"));
  pids();
  send(SIGUSR1);
  EXPECT_TRUE(wait_for_file("log0", "save\n"));
  EXPECT_TRUE(wait_for_file("log1", "save\n"));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
}

TEST_F(Launched, AClosedTerminalEndsNothing) {
  start(2, waits_with("exit 9"));
  pids();
  send(SIGHUP);
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
}

// A shell that has just forked waits uninterruptibly ("D") for its child, which is stopped too.
TEST_F(Launched, CtrlZStopsAllUntilTheLauncherGoesOn) {
  const auto halted = [](pid_t pid) { return state_of(pid) == "T" || state_of(pid) == "D"; };
  start(2, waits_with("exit 9"));
  const std::vector<pid_t> ranks = pids();
  send(SIGTSTP);
  for (const pid_t pid : ranks) EXPECT_TRUE(wait_for([&] { return halted(pid); }));
  EXPECT_TRUE(wait_for([&] { return state_of(launcher()) == "T"; }));  // the last to stop: a shell waits for it, too
  send(SIGCONT);
  for (const pid_t pid : ranks) EXPECT_TRUE(wait_for([&] { return !halted(pid); }));
  folder_.write("go", "");
  EXPECT_EQ(wait(), 0);
}

TEST_F(Launched, RanksDieWithTheLauncher) {
  start(2, waits_with("exit 9"));
  const std::vector<pid_t> ranks = pids();
  send(SIGKILL);
  wait();
  for (const pid_t pid : ranks) {
    const auto gone = [&] { return state_of(pid).empty() || state_of(pid) == "Z"; };
    EXPECT_TRUE(wait_for(gone));
  }
}

TEST_F(Launched, RanksShareTheCores) {
  EXPECT_EQ(run(2, "grep Cpus_allowed_list /proc/self/status > \"$FOLDER/cores$RANK\""), 0);
  const std::vector<int> all = cores_of_affinity();
  if (all.size() < 2) {
    EXPECT_EQ(file("cores0"), file("cores1"));
  } else {
    EXPECT_NE(file("cores0"), file("cores1"));
    EXPECT_THAT(file("cores0"), HasSubstr("\t" + std::to_string(all.front())));
    EXPECT_THAT(file("cores1"), HasSubstr(std::to_string(all.back()) + "\n"));
  }
}

TEST_F(Launched, AProgramThatIsNotThereIsRefused) {
  EXPECT_THAT(message_of<UserError>([] { Launch({.words = {"/no/such/program"}, .ranks = 2}); }), HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace sluice::cli::launch_test
