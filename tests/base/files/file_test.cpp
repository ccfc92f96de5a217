#include "base/files/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "tests/temporary_folder.h"

namespace sluice::file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class File : public testing::Test {
 protected:
  File() {
    std::string pattern = testing::TempDir() + "sluice_file_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~File() override { fs::remove_all(folder_); }

  fs::path at(const std::string& name) const { return folder_ / name; }

  static void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  // Read with the standard library, not with what is tested.
  static std::string content(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  template <class Action>
  static std::string error_of(Action action) {
    try {
      action();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(File, IsReadWhole) {
  std::string bytes;
  for (int i = 0; i < 300000; ++i) bytes += static_cast<char>(i * 31 + i / 256);
  put(at("a"), bytes);
  EXPECT_EQ(read_file(at("a")), bytes);
  put(at("empty"), "");
  EXPECT_EQ(read_file(at("empty")), "");
}

TEST_F(File, ThatIsMissingOrAFolderIsNamed) {
  EXPECT_EQ(error_of([&] { read_file(at("none")); }),
            "error: cannot read " + at("none").string() + ": No such file or directory\n");
  EXPECT_EQ(error_of([&] { read_file(folder_); }), "error: cannot read " + folder_.string() + ": it is a folder, not a file\n");
}

TEST_F(File, IsReplacedAsAWholeAndLeavesNothingBeside) {
  put(at("a"), "old, and longer than the new content");
  write_file_atomically(at("a"), "new");
  EXPECT_EQ(content(at("a")), "new");
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

TEST_F(File, ThatCannotBeReplacedStaysAndLeavesNothingBeside) {
  fs::create_directories(at("a/inside"));
  EXPECT_THAT(error_of([&] { write_file_atomically(at("a"), "new"); }), HasSubstr(at("a").string()));
  EXPECT_TRUE(fs::is_directory(at("a/inside")));
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

TEST_F(File, InAFolderThatIsMissingCannotBeWritten) {
  EXPECT_THAT(error_of([&] { write_file_atomically(at("none/a"), "x"); }), HasSubstr("No such file or directory"));
}

TEST_F(File, IsWrittenRelativeToTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("a", "x");
  fs::current_path(before);
  EXPECT_EQ(content(at("a")), "x");
}

TEST_F(File, IsTruncatedOrAppendedTo) {
  put(at("a"), "old");
  OutputFile append(at("a"), OutputFile::Mode::kAppend);
  append.write(" and");
  append.write(" new");
  append.close();
  EXPECT_EQ(content(at("a")), "old and new");
  OutputFile truncate(at("a"));
  truncate.write("x");
  truncate.sync();
  EXPECT_EQ(content(at("a")), "x");
}

TEST_F(File, OnAFullDiskIsReportedWithARemedy) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  OutputFile full("/dev/full");
  const std::string error = error_of([&] { full.write("x"); });
  EXPECT_THAT(error, HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_THAT(error, HasSubstr("= help: free space"));
}

TEST_F(File, InAFolderThatIsMissingIsRefusedWithItsName) {
  EXPECT_THAT(error_of([&] { write_file_atomically(at("none/a"), "x"); }),
              HasSubstr("= help: there is no folder " + at("none").string()));
  EXPECT_THAT(error_of([&] { OutputFile file(at("none/a")); }), HasSubstr("= help: there is no folder " + at("none").string()));
  EXPECT_THAT(error_of([&] { read_file(at("none/a")); }), HasSubstr("= help: there is no folder " + at("none").string()));
}

TEST_F(File, KnowsItsSizeWithWhatWasThereBefore) {
  put(at("a"), "old");
  OutputFile append(at("a"), OutputFile::Mode::kAppend);
  EXPECT_EQ(append.size(), 3);
  append.write(" and new");
  EXPECT_EQ(append.size(), 11);
  OutputFile truncate(at("a"));
  EXPECT_EQ(truncate.size(), 0);
}

TEST_F(File, IsCutToALength) {
  put(at("a"), "some bytes");
  cut_file(at("a"), 4);
  EXPECT_EQ(content(at("a")), "some");
  cut_file(at("a"), 4);
  EXPECT_EQ(content(at("a")), "some");
}

TEST_F(File, IsNotCutToMoreThanItHas) {
  put(at("a"), "some");
  EXPECT_EQ(error_of([&] { cut_file(at("a"), 5); }), "error: cannot cut " + at("a").string() + " to 5 bytes: it has only 4\n");
  EXPECT_EQ(content(at("a")), "some");
  EXPECT_THAT(error_of([&] { cut_file(at("none"), 0); }), HasSubstr("cannot shorten " + at("none").string()));
}

TEST_F(File, WritingAfterCloseIsABug) {
  OutputFile file(at("a"));
  file.close();
  EXPECT_THROW(file.write("x"), InternalError);
}

TEST_F(File, AFolderReplacesAnotherAsAWhole) {
  fs::create_directories(at("old"));
  put(at("old/a"), "old");
  put(at("old/only_old"), "old");
  fs::create_directories(at("new"));
  put(at("new/a"), "new");
  replace_path(at("new"), at("old"));
  EXPECT_EQ(content(at("old/a")), "new");
  EXPECT_FALSE(fs::exists(at("old/only_old")));
  EXPECT_THAT(names(), testing::ElementsAre("old"));
}

TEST_F(File, AFolderReplacesNothingYet) {
  fs::create_directories(at("new"));
  replace_path(at("new"), at("target"));
  EXPECT_THAT(names(), testing::ElementsAre("target"));
}

TEST_F(File, ThatIsMissingDoesNotReplaceAFolder) {
  fs::create_directories(at("target"));
  put(at("target/a"), "kept");
  EXPECT_THAT(error_of([&] { replace_path(at("none"), at("target")); }), HasSubstr("No such file or directory"));
  EXPECT_EQ(content(at("target/a")), "kept");
}

std::string text_of(const MappedFile& file) { return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}; }

TEST_F(File, IsMappedWhole) {
  put(at("a"), "some bytes");
  MappedFile first(at("a"));
  const MappedFile moved(std::move(first));
  EXPECT_EQ(text_of(moved), "some bytes");
  EXPECT_TRUE(first.bytes().empty());
}

// Of mapped files; sanitizers have memory of their own beside it.
int64_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  int64_t kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "RssFile:") status >> kilobytes;
  return kilobytes * 1024;
}

TEST_F(File, IsReadInPiecesThatDoNotStayInMemory) {
  std::string text(size_t{48} << 20, 'x');
  text += "the end";
  put(at("a"), text);
  const MappedFile file(at("a"));
  const uint32_t expected = crc32c(text);
  const int64_t before = resident_file_bytes();
  EXPECT_EQ(crc32c(file), expected);
  EXPECT_LT(resident_file_bytes() - before, int64_t{16} << 20);
}

TEST_F(File, ThatIsEmptyMapsToNothing) {
  put(at("a"), "");
  EXPECT_TRUE(MappedFile(at("a")).bytes().empty());
}

TEST_F(File, ThatIsMissingCannotBeMapped) {
  EXPECT_THAT(error_of([&] { MappedFile file(at("none")); }), HasSubstr("cannot read"));
  EXPECT_THAT(error_of([&] { MappedFile file(folder_); }), HasSubstr("it is a folder, not a file"));
}

// A pipe without a writer would be waited for, a device has no end.
TEST_F(File, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<UserError>([&] { read_file(at("pipe")); }), HasSubstr("it is a named pipe, not a file"));
  EXPECT_THAT(message_of<UserError>([&] { read_file("/dev/zero"); }), HasSubstr("it is a device, not a file"));
  EXPECT_THAT(message_of<UserError>([&] { read_file(folder_); }), HasSubstr("it is a folder, not a file"));
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{at("pipe")}; }), HasSubstr("it is a named pipe, not a file"));
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{"/dev/zero"}; }), HasSubstr("it is a device, not a file"));
}

TEST_F(File, APipeThatNobodyReadsIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<UserError>([&] { OutputFile{at("pipe")}; }), HasSubstr("/pipe: No such device or address"));
}

TEST_F(File, AFileThatIsTooLargeIsNotReadAtAll) {
  put(at("text"), "12345");
  EXPECT_EQ(read_file(at("text"), 5), "12345");
  EXPECT_THAT(message_of<UserError>([&] { read_file(at("text"), 4); }), HasSubstr("it has more than 4 B"));
  fs::resize_file(at("text"), int64_t{200} << 30);  // without blocks on the disk
  EXPECT_THAT(message_of<UserError>([&] { read_file(at("text")); }), HasSubstr("it has more than 67.1 MB"));
}

// Its size is 0 as the system tells it.
TEST_F(File, AFileThatHidesItsSizeIsReadToItsBound) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_THAT(message_of<UserError>([&] { read_file("/proc/self/status", 10); }), HasSubstr("it has more than 10 B"));
}

TEST_F(File, TheEndOfALargeFileIsReadAlone) {
  put(at("log"), "first\nlast\n");
  EXPECT_EQ(read_end_of_file(at("log"), 5), "last\n");
  EXPECT_EQ(read_end_of_file(at("log"), 500), "first\nlast\n");
}

// Reading it would take hours and find zeros.
TEST_F(File, ALargeFileWithAlmostNothingOnTheDiskIsNotMapped) {
  put(at("weights"), "begin");
  fs::resize_file(at("weights"), int64_t{1} << 40);
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{at("weights")}; }),
              HasSubstr("almost nothing of its 1.1 TB is on the disk"));
  fs::resize_file(at("weights"), 1 << 20);
  EXPECT_EQ(MappedFile{at("weights")}.bytes().size(), size_t{1} << 20);
}

}  // namespace
}  // namespace sluice::file_test
