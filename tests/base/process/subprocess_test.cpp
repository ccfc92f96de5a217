#include "base/process/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/process/machine.h"
#include "tests/temporary_folder.h"

namespace sluice::subprocess_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

constexpr seconds kLong{60};  // never reached unless something hangs

SubprocessOptions shell(const std::string& script) { return {.arguments = {"/bin/sh", "-c", script}}; }

Subprocess::Clock::time_point later() { return Subprocess::Clock::now() + kLong; }

void wait_for_end(Subprocess& process) {
  Subprocess* const only = &process;
  for (const auto until = later(); !process.ended() && Subprocess::Clock::now() < until;) Subprocess::exchange({&only, 1}, until);
  ASSERT_TRUE(process.ended());
}

std::string next_line(Subprocess& process) {
  Subprocess* const only = &process;
  const auto until = later();
  while (true) {
    if (auto line = process.take_line()) return *line;
    if (process.ended() || Subprocess::Clock::now() > until) break;
    Subprocess::exchange({&only, 1}, until);
  }
  ADD_FAILURE() << "no line";
  return {};
}

// How many descriptors this process has open.
size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  return static_cast<bool>(file >> id >> name >> state) && state != "Z";
}

bool dies(pid_t pid) {
  for (const auto until = later(); Subprocess::Clock::now() < until;) {
    if (!alive(pid)) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

TEST(Subprocess, ArgumentsReachTheProgramAsTheyAre) {
  Subprocess process({.arguments = {"printf", "%s|", "a b", "$HOME", "", "'\"*"}});
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), "a b|$HOME||'\"*|");
  EXPECT_TRUE(process.succeeded());
}

TEST(Subprocess, LinesGoThereAndBack) {
  Subprocess process({.arguments = {"cat"}});
  process.send("one\ntw");
  EXPECT_EQ(next_line(process), "one");
  process.send("o\n");
  EXPECT_EQ(next_line(process), "two");
  EXPECT_FALSE(process.take_line());
}

TEST(Subprocess, MoreThanThePipesHoldGoesBothWaysAtOnce) {
  const std::string much(3'000'000, 'x');
  Subprocess process({.arguments = {"cat"}});
  process.send(much);
  process.end_input();
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), much);
}

TEST(Subprocess, TellsHowItEnded) {
  Subprocess exits(shell("exit 3"));
  wait_for_end(exits);
  EXPECT_EQ(exits.how_it_ended(), "exited with code 3");
  EXPECT_FALSE(exits.succeeded());

  Subprocess falls(shell("kill -SEGV $$"));
  wait_for_end(falls);
  EXPECT_EQ(falls.how_it_ended(), "was killed by signal 11 (SEGV)");
}

TEST(Subprocess, EndsAsAShellTellsIt) {
  Subprocess exits(shell("exit 3")), falls(shell("kill -SEGV $$"));
  wait_for_end(exits);
  wait_for_end(falls);
  EXPECT_EQ(exits.shell_code(), 3);
  EXPECT_FALSE(exits.was_killed());
  EXPECT_EQ(falls.shell_code(), 139);
  EXPECT_TRUE(falls.was_killed());
}

TEST(Subprocess, ASignalReachesItAloneOrWithItsGroup) {
  Subprocess process(shell("trap 'echo asked' USR1; sh -c 'echo $$; exec sleep 1000' & wait; wait; echo alone"));
  const pid_t grandchild = std::stoi(next_line(process));
  process.signal(SIGUSR1);
  EXPECT_EQ(next_line(process), "asked");
  EXPECT_TRUE(alive(grandchild));
  process.signal_group(SIGUSR1);
  EXPECT_TRUE(dies(grandchild));
  wait_for_end(process);
  process.signal(SIGUSR1);  // to nobody
}

// Whoever takes long to be loaded is not ended by a signal that it will handle.
TEST(Subprocess, DoesNotGetASignalThatIsBlocked) {
  SubprocessOptions options = shell("echo ready; read line; echo \"$line\"");
  options.blocked = {SIGUSR1};
  Subprocess process(options);
  EXPECT_EQ(next_line(process), "ready");
  process.signal(SIGUSR1);
  process.send("alive\n");
  EXPECT_EQ(next_line(process), "alive");
}

TEST(Subprocess, OnePipeKeepsTheOrderOfBothOutputs) {
  SubprocessOptions options = shell("echo one; echo two >&2; echo three");
  options.output = ChildOutput::kOnePipe;
  Subprocess process(options);
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), "one\ntwo\nthree\n");
  EXPECT_EQ(process.errors(), "");
}

// In a process of its own, whose output is a pipe.
TEST(Subprocess, MayWriteWhereThisProcessDoes) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    SubprocessOptions options = shell("cat; echo one; echo two >&2");
    options.output = ChildOutput::kShared;
    Subprocess process(options);
    process.end_input();
    wait_for_end(process);
    ::_exit(process.succeeded() && process.take_output().empty() && process.errors().empty() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  std::array<char, 100> bytes{};
  const ssize_t count = ::read(pipe[0], bytes.data(), bytes.size());
  EXPECT_EQ(std::string(bytes.data(), count < 0 ? 0 : static_cast<size_t>(count)), "one\ntwo\n");
  for (const int end : pipe) ::close(end);
}

TEST(Subprocess, RunsOnTheCoresThatItIsGiven) {
  const std::vector<int> all = cores_of_affinity();
  ASSERT_FALSE(all.empty());
  SubprocessOptions options = shell("grep Cpus_allowed_list /proc/self/status");
  options.cores = {all.back()};
  Subprocess process(options);
  EXPECT_EQ(next_line(process), "Cpus_allowed_list:\t" + std::to_string(all.back()));
  EXPECT_EQ(cores_of_affinity(), all);
}

TEST(Subprocess, ProgramThatIsMissingIsNamed) {
  EXPECT_THAT(message_of<UserError>([] { Subprocess({.arguments = {"no-such-program-here"}}); }),
              HasSubstr("\"no-such-program-here\""));
}

TEST(Subprocess, ProgramThatCannotBeExecutedSaysWhy) {
  const TemporaryFolder folder;
  const auto path = folder.write("broken", "\x7f not a program");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_THAT(message_of<UserError>([&] { Subprocess({.arguments = {path.string()}}); }), HasSubstr("Exec format error"));
}

TEST(Subprocess, KeepsTheEndOfTheErrors) {
  SubprocessOptions options = shell("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done");
  options.kept_errors = 100;
  Subprocess process(options);
  wait_for_end(process);
  EXPECT_EQ(process.errors().size(), 100u);
  EXPECT_THAT(process.errors(), testing::EndsWith("line 1999\n"));
}

TEST(Subprocess, InputThatNobodyReadsIsNoHarm) {
  Subprocess process(shell("exec <&-; echo closed; sleep 1000"));
  ASSERT_EQ(next_line(process), "closed");
  process.send(std::string(1'000'000, 'x'));
  Subprocess* const only = &process;
  Subprocess::exchange({&only, 1}, later());
  EXPECT_FALSE(process.ended());
}

TEST(Subprocess, KillEndsWhatIgnoresBeingAsked) {
  Subprocess process(shell("trap '' TERM; echo ready; while true; do sleep 1000; done"));
  ASSERT_EQ(next_line(process), "ready");
  process.kill(milliseconds(50));
  EXPECT_EQ(process.how_it_ended(), "was killed by signal 9 (KILL)");
}

TEST(Subprocess, KillAsksFirst) {
  Subprocess process(shell("trap 'echo asked; exit 7' TERM; echo ready; while true; do sleep 0.01; done"));
  ASSERT_EQ(next_line(process), "ready");
  process.kill(kLong);
  EXPECT_EQ(process.how_it_ended(), "exited with code 7");
  EXPECT_EQ(process.take_output(), "asked\n");
}

TEST(Subprocess, WhatItStartedDiesWithIt) {
  pid_t grandchild = 0;
  {
    Subprocess process(shell("sleep 1000 & echo $!; wait"));
    grandchild = std::stoi(next_line(process));
    EXPECT_TRUE(alive(grandchild));
  }
  EXPECT_TRUE(dies(grandchild));
}

TEST(Subprocess, WhatItLeavesBehindDoesNotHoldUpItsEnd) {
  Subprocess process(shell("sleep 1000 & echo $!"));
  const pid_t left = std::stoi(next_line(process));
  wait_for_end(process);
  EXPECT_TRUE(process.succeeded());
  EXPECT_TRUE(dies(left));
}

TEST(Subprocess, OutlivesTheThreadThatMadeIt) {
  std::unique_ptr<Subprocess> process;
  std::thread([&] { process = std::make_unique<Subprocess>(shell("while read line; do echo $line; done")); }).join();
  for (int i = 0; i < 100; ++i) {  // a signal would take its time
    process->send("still here\n");
    ASSERT_EQ(next_line(*process), "still here");
  }
}

TEST(Subprocess, DiesWithThisProcess) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    Subprocess process(shell("echo $$; sleep 1000"));
    const pid_t started = std::stoi(next_line(process));
    if (::write(pipe[1], &started, sizeof started) == sizeof started) ::raise(SIGKILL);
    ::_exit(1);
  }
  pid_t started = -1;
  EXPECT_EQ(::read(pipe[0], &started, sizeof started), static_cast<ssize_t>(sizeof started));
  int status = 0;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(dies(started));
  for (const int end : pipe) ::close(end);
}

TEST(Subprocess, TooMuchOutputStopsAndCanBeKilled) {
  SubprocessOptions options = shell("while true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
  options.most_output = 100'000;
  Subprocess process(options);
  Subprocess* const only = &process;
  for (const auto until = later(); !process.overflowed() && Subprocess::Clock::now() < until;)
    Subprocess::exchange({&only, 1}, until);
  EXPECT_TRUE(process.overflowed());
  process.kill();
  EXPECT_TRUE(process.ended());
}

TEST(Subprocess, HasNoDescriptorsButItsOwnAndThoseItInherits) {
  const int secret = ::open("/dev/null", O_RDONLY), shared = ::open("/dev/null", O_RDONLY);  // not closed by exec
  SubprocessOptions options = shell("i=3; while [ $i -lt 200 ]; do [ -e /proc/self/fd/$i ] && echo $i; i=$((i+1)); done; true");
  options.inherited = {shared};
  Subprocess process(options);
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), std::to_string(shared) + "\n") << "the other one is " << secret;
  ::close(secret);
  ::close(shared);
}

// In a process of its own, for which the system refuses close_range as if it did not know it.
TEST(Subprocess, HasNoDescriptorsWhereTheSystemCannotCloseThemAtOnce) {
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    sock_filter filter[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                            {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 436 /* close_range */},
                            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
                            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    sock_fprog program{.len = std::size(filter), .filter = filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(2);
    for (int i = 0; i < 300; ++i) static_cast<void>(::open("/dev/null", O_RDONLY));
    Subprocess process(shell("i=3; while [ $i -lt 400 ]; do [ -e /proc/self/fd/$i ] && echo $i; i=$((i+1)); done; true"));
    wait_for_end(process);
    ::_exit(process.succeeded() && process.take_output().empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Subprocess, OutputMayFillItsLimit) {
  SubprocessOptions options = shell("printf 12345678");
  options.most_output = 8;
  Subprocess fits(options);
  wait_for_end(fits);
  EXPECT_FALSE(fits.overflowed());
  EXPECT_EQ(fits.take_output(), "12345678");
  options.most_output = 7;
  Subprocess over(options);
  Subprocess* const only = &over;
  for (const auto until = later(); !over.overflowed() && Subprocess::Clock::now() < until;)
    Subprocess::exchange({&only, 1}, until);
  EXPECT_TRUE(over.overflowed());
}

TEST(Subprocess, EnvironmentAndFolderAreThoseThatWereGiven) {
  const TemporaryFolder folder;
  SubprocessOptions options{.arguments = {"/bin/sh", "-c", "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=; pwd -P"}};
  options.environment = {"COLOUR=red"};
  options.folder = folder.path();
  Subprocess process(options);
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), "COLOUR=red\n" + std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST(Subprocess, FolderThatIsMissingIsAnError) {
  SubprocessOptions options = shell("true");
  options.folder = "/no/such/folder";
  EXPECT_THAT(message_of<UserError>([&] { Subprocess{options}; }), HasSubstr("No such file or directory"));
}

TEST(Subprocess, SignalsThatThisProcessIgnoresAreNotIgnoredByIt) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Subprocess process(shell("kill -PIPE $$; echo survived"));
  wait_for_end(process);
  std::signal(SIGPIPE, before);
  EXPECT_EQ(process.how_it_ended(), "was killed by signal 13 (PIPE)");
}

TEST(Subprocess, RunsAsAnotherUserWithoutItsRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can";
  SubprocessOptions options = shell("id -u; id -G; cat /dev/stdin > /dev/stdout");
  options.user = 65534;
  Subprocess process(options);
  process.send("and its pipes are its own\n");
  process.end_input();
  wait_for_end(process);
  EXPECT_EQ(process.take_output(), "65534\n65534\nand its pipes are its own\n");
}

TEST(Subprocess, LeavesNoZombieAndNoDescriptorBehind) {
  { Subprocess first(shell("true")); }  // what the first use alone opens
  const size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    Subprocess running(shell("sleep 1000")), done(shell("true"));
    wait_for_end(done);
    EXPECT_THROW(Subprocess({.arguments = {"/no/such/program"}}), UserError);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Subprocess, SeveralThreadsMayHaveTheirOwn) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(4);
  for (size_t t = 0; t < outputs.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        Subprocess process({.arguments = {"cat"}});
        process.send(std::to_string(t));
        process.end_input();
        wait_for_end(process);
        outputs[t] += process.take_output();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(outputs, testing::ElementsAre("00000", "11111", "22222", "33333"));
}

TEST(Subprocess, ExchangeReturnsAtItsTimeWhenNothingMoves) {
  Subprocess process(shell("sleep 1000"));
  Subprocess* const only = &process;
  const auto until = Subprocess::Clock::now() + milliseconds(20);
  while (Subprocess::Clock::now() < until) Subprocess::exchange({&only, 1}, until);
  EXPECT_FALSE(process.ended());
}

TEST(FindProgram, LooksInPathUnlessTheNameHasASlash) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_TRUE(find_program("/bin/sh"));
  EXPECT_FALSE(find_program("./sh"));
  EXPECT_FALSE(find_program("/usr"));
  EXPECT_FALSE(find_program(""));
}

}  // namespace
}  // namespace sluice::subprocess_test
