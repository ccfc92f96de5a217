#include "base/files/confined_file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "tests/temporary_folder.h"

namespace sluice::confined_file_system_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder `in` that may be written, and one beside it that may not, with a file of 6 bytes.
class ConfinedFileSystemTest : public testing::Test {
 protected:
  ConfinedFileSystemTest() {
    fs::create_directory(in_);
    fs::create_directory(out_);
    folder_.write("out/secret", "secret");
  }
  ~ConfinedFileSystemTest() override {
    EXPECT_EQ(read_file(out_ / "secret"), "secret");
    EXPECT_EQ(std::distance(fs::directory_iterator(out_), {}), 1) << "something was put outside";
  }

  std::string refusal_to_write(const fs::path& path) {
    return message_of<UserError>([&] { OutputFile(path, OutputFile::Mode::kTruncate, files_).write("x"); });
  }

  const TemporaryFolder folder_;
  const fs::path in_ = folder_.path() / "in", out_ = folder_.path() / "out";
  ConfinedFileSystem files_{{in_}};
};

TEST_F(ConfinedFileSystemTest, EverythingIsPossibleInside) {
  make_folders(in_ / "a/b", files_);
  write_file_atomically(in_ / "a/b/c", "text", files_);
  EXPECT_EQ(read_file(in_ / "a/b/c"), "text");
  cut_file(in_ / "a/b/c", 2, files_);
  replace_link("a/b", in_ / "newest", files_);
  replace_path(in_ / "a/b", in_ / "d", files_);
  EXPECT_EQ(read_file(in_ / "d/c"), "te");
  remove_whole(in_ / "d", files_);
  remove_tree(in_ / "newest", files_);
  EXPECT_FALSE(fs::exists(in_ / "d"));
}

TEST_F(ConfinedFileSystemTest, NamesThatLeadOutsideAreRefused) {
  EXPECT_THAT(refusal_to_write(out_ / "new"), HasSubstr("leads out of the folder"));
  EXPECT_THAT(refusal_to_write(in_ / "../out/new"), HasSubstr("leads out of the folder"));
  EXPECT_THAT(refusal_to_write(in_ / "a/../../out/new"), HasSubstr("leads out of the folder"));
  EXPECT_THAT(refusal_to_write(folder_.path() / "innocent"), HasSubstr("leads out of the folder"));
}

TEST_F(ConfinedFileSystemTest, LinksAreNotFollowedOnTheWay) {
  fs::create_directory_symlink(out_, in_ / "way");
  EXPECT_THAT(refusal_to_write(in_ / "way/secret"), HasSubstr("leads out of the folder"));
  EXPECT_THROW(make_folders(in_ / "way/folder", files_), UserError);
  EXPECT_THROW(remove_tree(in_ / "way/secret", files_), UserError);
  EXPECT_THROW(cut_file(in_ / "way/secret", 0, files_), UserError);
  EXPECT_THROW(write_file_atomically(in_ / "way/secret", "x", files_), UserError);
  EXPECT_THROW(replace_path(out_ / "secret", in_ / "mine", files_), UserError);
}

TEST_F(ConfinedFileSystemTest, AFileThatIsALinkIsNotWritten) {
  fs::create_symlink(out_ / "secret", in_ / "log");
  fs::create_symlink(out_ / "new", in_ / "status.tmp");
  EXPECT_THAT(refusal_to_write(in_ / "log"), HasSubstr("leads out of the folder"));
  EXPECT_THROW(OutputFile(in_ / "log", OutputFile::Mode::kAppend, files_), UserError);
  EXPECT_THROW(cut_file(in_ / "log", 0, files_), UserError);
  EXPECT_THROW(replace_file(in_ / "status", "x", files_), UserError);
}

TEST_F(ConfinedFileSystemTest, ALinkItselfCanBeRemovedAndReplaced) {
  fs::create_directory_symlink(out_, in_ / "way");
  fs::create_symlink(out_ / "secret", in_ / "log");
  remove_tree(in_ / "way", files_);
  write_file_atomically(in_ / "log", "mine", files_);
  EXPECT_EQ(fs::symlink_status(in_ / "log").type(), fs::file_type::regular);
}

TEST_F(ConfinedFileSystemTest, LinksThatLeadOutsideAreNotMade) {
  EXPECT_THROW(replace_link(out_, in_ / "way", files_), UserError);
  EXPECT_THROW(replace_link("../out", in_ / "way", files_), UserError);
}

TEST_F(ConfinedFileSystemTest, PipesAndDevicesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((in_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_to_write(in_ / "pipe"), HasSubstr("not an ordinary file"));
}

// As a user names a run folder: "./run", "run/.", "here/../run", ".".
TEST_F(ConfinedFileSystemTest, AFolderMayBeNamedInManyWays) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  for (const fs::path folder : {"./in", "in/.", "in/./", "out/../in", "in", "in/", "./out/.././in"}) {
    ConfinedFileSystem files({folder});
    EXPECT_NO_THROW(replace_link("a", folder / "newest", files)) << folder;
    EXPECT_EQ(fs::read_symlink(in_ / "newest"), "a") << folder;
    EXPECT_THROW(replace_link("../out", folder / "newest", files), UserError) << folder;
    EXPECT_THROW(replace_link(out_, folder / "newest", files), UserError) << folder;
    fs::remove(in_ / "newest");
  }
  fs::current_path(in_);
  ConfinedFileSystem files({"."});
  EXPECT_NO_THROW(replace_link("a", "./newest", files));
  EXPECT_THROW(replace_link("../out", "./newest", files), UserError);
  fs::current_path(before);
}

TEST_F(ConfinedFileSystemTest, TheFolderItselfMayBeReachedThroughALink) {
  fs::create_directory_symlink(in_, folder_.path() / "runs");
  ConfinedFileSystem files({folder_.path() / "runs/"});
  OutputFile(folder_.path() / "runs/log", OutputFile::Mode::kAppend, files).write("x");
  EXPECT_EQ(read_file(in_ / "log"), "x");
  write_file_atomically(folder_.path() / "runs/whole", "y", files);  // which opens the folder, too
  EXPECT_EQ(read_file(in_ / "whole"), "y");
}

TEST_F(ConfinedFileSystemTest, ThereMayBeSeveralFolders) {
  fs::create_directory(folder_.path() / "other");
  ConfinedFileSystem files({in_, folder_.path() / "other"});
  replace_link(folder_.path() / "other", in_ / "checkpoints", files);
  replace_link("checkpoints/1", in_ / "newest", files);
  OutputFile(folder_.path() / "other/log", OutputFile::Mode::kAppend, files).write("x");
  EXPECT_THROW(OutputFile(in_ / "checkpoints/log", OutputFile::Mode::kAppend, files), UserError);
}

}  // namespace
}  // namespace sluice::confined_file_system_test
