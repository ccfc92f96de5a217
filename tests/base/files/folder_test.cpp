#include "base/files/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "tests/files/recording_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::folder_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Folder : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [path, entry] : content_of(folder_.path()).entries) names.push_back(path.string());
    return names;
  }

  TemporaryFolder folder_;
};

TEST_F(Folder, IsMadeWithThoseAboveIt) {
  make_folders(at("a/b/c"));
  make_folders(at("a/b/c/"));  // it is there
  make_folders(at("a/d/"));
  EXPECT_THAT(names(), ElementsAre("a", "a/b", "a/b/c", "a/d"));
}

TEST_F(Folder, IsMadeInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  make_folders("a/b");
  fs::current_path(before);
  EXPECT_THAT(names(), ElementsAre("a", "a/b"));
}

TEST_F(Folder, CannotBeMadeWhereAFileIs) {
  folder_.write("a", "x");
  EXPECT_THAT(message_of<UserError>([&] { make_folders(at("a")); }),
              HasSubstr("cannot make folder " + at("a").string() + ": a file has that name"));
  fs::create_symlink(at("nowhere"), at("link"));
  EXPECT_THAT(message_of<UserError>([&] { make_folders(at("link/b")); }),
              HasSubstr("cannot make folder " + at("link").string() + ": a symbolic link of that name leads to nothing"));
  EXPECT_THAT(message_of<UserError>([&] { make_folders(at("a/b")); }), HasSubstr(at("a").string()));
}

TEST_F(Folder, ThatIsToBeNewIsMadeOnce) {
  EXPECT_TRUE(make_new_folder(at("a/b")));
  EXPECT_FALSE(make_new_folder(at("a/b")));
  EXPECT_TRUE(make_new_folder(at("a/c")));
  folder_.write("file", "x");
  EXPECT_FALSE(make_new_folder(at("file")));
  EXPECT_THAT(names(), ElementsAre("a", "a/b", "a/c", "file"));
  EXPECT_THAT(message_of<UserError>([&] { make_new_folder(at("file/b")); }), HasSubstr(at("file").string()));
}

TEST_F(Folder, IsRemovedWithAllThatIsInItButNotWhatItsLinksPointTo) {
  make_folders(at("outside"));
  folder_.write("outside/a", "stays");
  make_folders(at("f/g/h"));
  folder_.write("f/g/a", "x");
  fs::create_symlink(at("outside"), at("f/to_folder"));
  fs::create_symlink("nowhere", at("f/to_nothing"));
  remove_tree(at("f"));
  EXPECT_THAT(names(), ElementsAre("outside", "outside/a"));
}

TEST_F(Folder, ThatIsALinkIsRemovedAsALink) {
  make_folders(at("f"));
  fs::create_symlink("f", at("link"));
  remove_tree(at("link"));
  EXPECT_THAT(names(), ElementsAre("f"));
}

TEST_F(Folder, ThatIsMissingIsRemovedWithoutAWord) {
  remove_tree(at("none"));
  remove_whole(at("none/either"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Folder, ThatCannotBeRemovedIsNamed) {
  if (fs::exists("/proc/self/fd")) {
    EXPECT_THAT(message_of<UserError>([] { remove_tree("/proc/self/limits"); }), HasSubstr("cannot remove /proc/self/limits"));
  }
}

TEST_F(Folder, IsRemovedWholeAlongWithWhatACrashLeft) {
  make_folders(at("f/g"));
  folder_.write("f/a", "x");
  make_folders(at("f.removed/g"));
  remove_whole(at("f"));
  EXPECT_THAT(names(), IsEmpty());
  make_folders(at("f.removed/g"));  // a crash came when it had its last name
  remove_whole(at("f"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(Folder, LinkIsReplaced) {
  make_folders(at("1"));
  make_folders(at("2"));
  replace_link("1", at("link"));
  EXPECT_EQ(fs::read_symlink(at("link")), "1");
  replace_link("2", at("link"));
  EXPECT_EQ(fs::read_symlink(at("link")), "2");
  EXPECT_THAT(names(), ElementsAre("1", "2", "link"));
}

TEST_F(Folder, LinkReplacesAFolderToo) {
  make_folders(at("1"));
  make_folders(at("link"));
  folder_.write("link/a", "x");
  replace_link("1", at("link"));
  EXPECT_EQ(fs::read_symlink(at("link")), "1");
  EXPECT_THAT(names(), ElementsAre("1", "link"));
}

TEST_F(Folder, ReplacesALinkNotWhatItPointsTo) {
  make_folders(at("1"));
  folder_.write("1/a", "stays");
  fs::create_symlink("1", at("link"));
  make_folders(at("new"));
  folder_.write("new/b", "x");
  replace_path(at("new"), at("link"));
  EXPECT_THAT(names(), ElementsAre("1", "1/a", "link", "link/b"));
}

}  // namespace
}  // namespace sluice::folder_test
