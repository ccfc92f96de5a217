#include "cli/run_folder/run_lock.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::run_lock_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::filesystem::path& folder) {
  return message_of<UserError>([&] { RunLock second(folder); });
}

TEST(RunLock, SecondIsRefusedWithTheProcessThatHasIt) {
  const TemporaryFolder folder;
  const RunLock lock(folder.path());
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr("the run folder " + folder.path().string() + " is in use by process " + std::to_string(::getpid())),
                    HasSubstr(" since 20"), HasSubstr("kill " + std::to_string(::getpid()))));
}

TEST(RunLock, FileGoesWhenItIsReleased) {
  const TemporaryFolder folder;
  RunLock lock(folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "lock"));
  lock.release();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "lock"));
  const RunLock again(folder.path());
}

TEST(RunLock, FileWithoutALockMeansNothing) {
  const TemporaryFolder folder;
  for (const char* content : {"{\"pid\": 1, \"host\": \"elsewhere\", \"since\": \"2026-01-01T00:00:00Z\"}\n", "nonsense", ""}) {
    folder.write("lock", content);
    const RunLock lock(folder.path());
  }
}

TEST(RunLock, OwnerThatCannotBeReadIsRefusedAllTheSame) {
  const TemporaryFolder folder;
  const RunLock lock(folder.path());
  folder.write("lock", "half a li");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("is in use by another process"));
}

TEST(RunLock, FileOfANewOwnerStays) {
  const TemporaryFolder folder;
  RunLock lock(folder.path());
  std::filesystem::remove(folder.path() / "lock");  // somebody who thought it was stale
  const RunLock other(folder.path());
  lock.release();
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "lock"));
}

TEST(RunLock, GoesWithAProcessThatIsKilled) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const RunLock lock(folder.path());
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace sluice::cli::run_lock_test
