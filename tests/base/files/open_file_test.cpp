#include "base/files/open_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::open_file_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class OpenFileTest : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(OpenFileTest, AnyBytesOfItAreRead) {
  OpenFile first(folder_.write("a", "some bytes"));
  const OpenFile moved(std::move(first));
  EXPECT_EQ(moved.size(), 10u);
  EXPECT_EQ(moved.read(5, 5), "bytes");
  EXPECT_EQ(moved.read(10, 0), "");
}

TEST_F(OpenFileTest, OneThatIsCutShortIsAnErrorWithBothLengths) {
  const OpenFile file(folder_.write("a", "some bytes"));
  fs::resize_file(at("a"), 6);
  EXPECT_EQ(file.read(0, 6), "some b");
  EXPECT_THAT(message_of<UserError>([&] { file.read(5, 5); }),
              AllOf(HasSubstr(at("a").string() + " has been cut short while it is being read: 6 bytes, 10 when it was opened"),
                    HasSubstr("help: bring it back as it was")));
}

TEST_F(OpenFileTest, OfOneThatIsReplacedTheOldContentStays) {
  const OpenFile file(folder_.write("a", "some bytes"));
  fs::rename(folder_.write("b", "other"), at("a"));
  EXPECT_EQ(file.read(0, 10), "some bytes");
}

TEST_F(OpenFileTest, WhatIsWrittenBehindItsEndIsNotRead) {
  const OpenFile file(folder_.write("a", "some"));
  folder_.write("a", "some bytes");
  EXPECT_EQ(file.size(), 4u);
}

TEST_F(OpenFileTest, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<UserError>([&] { OpenFile{at("pipe")}; }), HasSubstr("it is a named pipe, not a file"));
  EXPECT_THAT(message_of<UserError>([&] { OpenFile{at("none")}; }), HasSubstr("cannot read"));
  fs::resize_file(folder_.write("hollow", "begin"), int64_t{1} << 40);
  EXPECT_THAT(message_of<UserError>([&] { OpenFile{at("hollow")}; }), HasSubstr("almost nothing of its 1.1 TB is on the disk"));
}

// As a process has, for the time of a test.
struct FewDescriptors {
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{.rlim_cur = most, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }

  rlimit before{};
};

TEST_F(OpenFileTest, MoreMayBeOpenThanTheSoftLimitAllows) {
  const fs::path path = folder_.write("a", "bytes");
  const FewDescriptors few(64);
  if (few.before.rlim_max < 200) GTEST_SKIP() << "the hard limit is " << few.before.rlim_max;
  std::vector<OpenFile> files;
  for (int i = 0; i < 150; ++i) files.emplace_back(path);
  EXPECT_EQ(files.back().read(0, 5), "bytes");
}

}  // namespace
}  // namespace sluice::open_file_test
