#include "base/files/path_kind.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/error.h"
#include "tests/ordinary_user.h"
#include "tests/temporary_folder.h"

namespace sluice::path_kind_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class PathKindTest : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  const TemporaryFolder folder_;
};

TEST_F(PathKindTest, TellsWhatIsThere) {
  folder_.write("file", "x");
  fs::create_directory(at("folder"));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(path_kind(at("file")), PathKind::kFile);
  EXPECT_EQ(path_kind(at("folder")), PathKind::kFolder);
  EXPECT_EQ(path_kind(at("pipe")), PathKind::kOther);
  EXPECT_EQ(path_kind("/dev/zero"), PathKind::kOther);
  EXPECT_EQ(path_kind(at("nothing")), PathKind::kNothing);
  EXPECT_EQ(path_kind(at("file") / "below"), PathKind::kNothing);
}

TEST_F(PathKindTest, FollowsLinksOnlyWhereAsked) {
  fs::create_directory(at("folder"));
  fs::create_directory_symlink(at("folder"), at("link"));
  fs::create_symlink(at("nothing"), at("dangling"));
  EXPECT_EQ(path_kind(at("link")), PathKind::kFolder);
  EXPECT_EQ(name_kind(at("link")), PathKind::kLink);
  EXPECT_EQ(path_kind(at("dangling")), PathKind::kNothing);
  EXPECT_EQ(name_kind(at("dangling")), PathKind::kLink);
}

TEST_F(PathKindTest, LinksInACircleAreTheUsersToMend) {
  fs::create_symlink(at("b"), at("a"));
  fs::create_symlink(at("a"), at("b"));
  EXPECT_THAT(message_of<UserError>([&] { path_kind(at("a")); }), HasSubstr("/a: its symbolic links go in a circle"));
  EXPECT_EQ(name_kind(at("a")), PathKind::kLink);
}

TEST_F(PathKindTest, AFolderThatMayNotBeEnteredIsNotAMissingFile) {
  fs::create_directory(at("closed"));
  folder_.write("closed/file", "x");
  fs::permissions(at("closed"), fs::perms::none);
  const std::string message = message_as_ordinary_user([&] { path_kind(at("closed/file")); });
  fs::permissions(at("closed"), fs::perms::owner_all);
  EXPECT_THAT(message, HasSubstr("closed/file: Permission denied"));
}

TEST_F(PathKindTest, ANameWithNulIsRefused) {
  folder_.write("file", "x");
  EXPECT_THAT(message_of<UserError>([&] { path_kind(at(std::string("file\0.txt", 9))); }), HasSubstr("NUL"));
}

TEST_F(PathKindTest, EntriesComeInOrderOfTheirNames) {
  for (const char* name : {"b", "c", "a"}) folder_.write(name, "");
  EXPECT_THAT(entries_of(folder_.path()), ElementsAre(at("a"), at("b"), at("c")));
  EXPECT_THAT(message_of<UserError>([&] { entries_of(at("none")); }), HasSubstr("none"));
}

}  // namespace
}  // namespace sluice::path_kind_test
