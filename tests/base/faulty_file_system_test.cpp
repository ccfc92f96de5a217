#include "tests/files/faulty_file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/files/recording_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::faulty_file_system_test {
namespace {

using Kind = Fault::Kind;

class FaultyFiles : public testing::Test {
 protected:
  // Opens a file, writes "abcd" twice, cuts it, syncs, closes, renames and removes it, whatever fails; the results in order.
  std::vector<int64_t> results_with(Fault fault) {
    FaultyFileSystem files(fault);
    const auto path = folder_.path() / "a", other = folder_.path() / "b";
    std::vector<int64_t> results;
    const int descriptor = files.open(path, O_WRONLY | O_CREAT | O_CLOEXEC);
    results.push_back(descriptor >= 0 ? 0 : -1);
    results.push_back(files.write(descriptor, "abcd", 4));
    results.push_back(files.write(descriptor, "abcd", 4));
    results.push_back(files.truncate(descriptor, 6));
    results.push_back(files.sync(descriptor));
    results.push_back(files.close(descriptor));
    results.push_back(files.rename(path, other));
    results.push_back(files.remove_file(other));
    error_ = errno;
    EXPECT_EQ(files.operations(), 8);
    struck_ = files.struck();
    return results;
  }

  TemporaryFolder folder_;
  int error_ = 0;
  bool struck_ = false;
};

TEST_F(FaultyFiles, WithoutAFaultDoAsTheOthersDo) {
  EXPECT_EQ(results_with({}), (std::vector<int64_t>{0, 4, 4, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(struck_);
}

TEST_F(FaultyFiles, FailOnceWithTheChosenError) {
  EXPECT_EQ(results_with({Kind::kFails, 4, EIO}), (std::vector<int64_t>{0, 4, 4, 0, -1, 0, 0, 0}));
  EXPECT_EQ(error_, EIO);
  EXPECT_TRUE(struck_);
}

TEST_F(FaultyFiles, FailForGood) {
  EXPECT_EQ(results_with({Kind::kFailsForGood, 4, EIO}), (std::vector<int64_t>{0, 4, 4, 0, -1, -1, -1, -1}));
  EXPECT_EQ(content_of(folder_.path()).entries.at("a").bytes, "abcdab");
}

TEST_F(FaultyFiles, OnAFullDiskWriteAPartAndThenStillRemove) {
  EXPECT_EQ(results_with({Kind::kDiskIsFull, 1, ENOSPC}),
            (std::vector<int64_t>{0, 2, -1, 0, -1, 0, -1, -1}));  // "b" is not there
}

TEST_F(FaultyFiles, WriteLessThanTheyAreGiven) {
  EXPECT_EQ(results_with({Kind::kShortWrite, 2}), (std::vector<int64_t>{0, 4, 2, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(struck_);
  EXPECT_EQ(results_with({Kind::kShortWrite, 3}), (std::vector<int64_t>{0, 4, 4, 0, 0, 0, 0, 0}));
  EXPECT_FALSE(struck_);
}

TEST_F(FaultyFiles, CountTheOperationsOfAllThreads) {
  FaultyFileSystem files({Kind::kFails, 500, EIO});
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 250; ++k) failed += files.make_folder(folder_.path()) != 0 && errno == EIO;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files.operations(), 1000);
  EXPECT_EQ(failed, 1);
}

}  // namespace
}  // namespace sluice::faulty_file_system_test
