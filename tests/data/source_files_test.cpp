#include "data/source_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::data::source_files_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SourceFilesTest : public testing::Test {
 protected:
  // Names relative to the folder of the test.
  std::vector<std::string> files(const std::vector<std::string>& paths) const {
    std::vector<fs::path> full;
    for (const std::string& path : paths) full.push_back(folder_.path() / path);
    std::vector<std::string> names;
    for (const fs::path& file : source_files(full)) names.push_back(fs::relative(file, folder_.path()).string());
    return names;
  }

  std::string error(const std::vector<std::string>& paths) const {
    return message_of<UserError>([&] { files(paths); });
  }

  TemporaryFolder folder_;
};

TEST_F(SourceFilesTest, AFileIsItselfWhateverItIsCalled) {
  folder_.write("rows.txt", "");
  EXPECT_THAT(files({"rows.txt"}), ElementsAre("rows.txt"));
}

TEST_F(SourceFilesTest, AFolderGivesItsJsonlFilesSortedByName) {
  for (const char* name : {"b.jsonl", "a.jsonl.gz", "c.txt", "B.jsonl", "README.md", "d.json"}) folder_.write(name, "");
  fs::create_directories(folder_.path() / "sub");
  folder_.write("sub/e.jsonl", "");
  EXPECT_THAT(files({"."}), ElementsAre("B.jsonl", "a.jsonl.gz", "b.jsonl"));
}

TEST_F(SourceFilesTest, APatternGivesWhatMatchesSortedByName) {
  for (const char* name : {"part-2.jsonl", "part-10.jsonl", "part-1.jsonl", "other.jsonl"}) folder_.write(name, "");
  EXPECT_THAT(files({"part-*.jsonl"}), ElementsAre("part-1.jsonl", "part-10.jsonl", "part-2.jsonl"));
  EXPECT_THAT(files({"part-[12].jsonl"}), ElementsAre("part-1.jsonl", "part-2.jsonl"));
  EXPECT_THAT(files({"part-?.jsonl"}), ElementsAre("part-1.jsonl", "part-2.jsonl"));
}

TEST_F(SourceFilesTest, APatternMayMatchFolderNames) {
  fs::create_directories(folder_.path() / "a");
  fs::create_directories(folder_.path() / "b");
  folder_.write("a/x.jsonl", "");
  folder_.write("b/x.jsonl", "");
  EXPECT_THAT(files({"*/x.jsonl"}), ElementsAre("a/x.jsonl", "b/x.jsonl"));
}

TEST_F(SourceFilesTest, AFileOfTheVeryNameIsNoPattern) {
  folder_.write("a[1].jsonl", "");
  folder_.write("a1.jsonl", "");
  EXPECT_THAT(files({"a[1].jsonl"}), ElementsAre("a[1].jsonl"));
}

TEST_F(SourceFilesTest, AListKeepsItsOrder) {
  for (const char* name : {"a.jsonl", "b.jsonl", "c.jsonl"}) folder_.write(name, "");
  EXPECT_THAT(files({"c.jsonl", "[ab].jsonl"}), ElementsAre("c.jsonl", "a.jsonl", "b.jsonl"));
}

TEST_F(SourceFilesTest, AFileThatIsNamedTwiceIsRefused) {
  folder_.write("a.jsonl", "");
  EXPECT_THAT(error({"a.jsonl", "*.jsonl"}), HasSubstr("a.jsonl is named twice"));
  fs::create_symlink(folder_.path() / "a.jsonl", folder_.path() / "b.jsonl");
  EXPECT_THAT(error({"."}), HasSubstr("b.jsonl is named twice"));
}

TEST_F(SourceFilesTest, WhatNamesNoFileIsRefused) {
  fs::create_directories(folder_.path() / "empty");
  EXPECT_THAT(error({"none.jsonl"}), HasSubstr("there is no file " + (folder_.path() / "none.jsonl").string()));
  EXPECT_THAT(error({"x-*.jsonl"}), HasSubstr("no file matches " + (folder_.path() / "x-*.jsonl").string()));
  EXPECT_THAT(error({"empty"}), HasSubstr("empty holds no *.jsonl, *.jsonl.gz, *.jsonl.zst, *.parquet, *.arrow or *.feather"));
}

// Which of them can be read is another matter: the library may be missing.
TEST_F(SourceFilesTest, AFolderWithoutLinesGivesItsParquetFilesElseThoseOfArrow) {
  const auto found = [&](const std::vector<std::string>& paths) {
    try {
      return files(paths);
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("./rlhf-run --setup --parquet"));
      return std::vector<std::string>{"the library is missing"};
    }
  };
  const auto are = [](std::vector<std::string> names) {
    return testing::AnyOf(testing::ElementsAreArray(names), ElementsAre("the library is missing"));
  };
  for (const char* name : {"cache-1f2e.arrow", "b.arrow", "a.feather", "state.json"}) folder_.write(name, "");
  EXPECT_THAT(found({"."}), are({"a.feather", "b.arrow"}));
  folder_.write("c.parquet", "");
  EXPECT_THAT(found({"."}), are({"c.parquet"}));
  folder_.write("d.jsonl.zst", "");
  EXPECT_THAT(files({"."}), ElementsAre("d.jsonl.zst"));
}

// Before the library for them is asked for.
TEST_F(SourceFilesTest, LinesThatAreCalledParquetAreRefused) {
  folder_.write("rows.parquet", "{\"a\": 1}\n");
  EXPECT_THAT(error({"rows.parquet"}), HasSubstr("rows.parquet is no Parquet file, although its name says so"));
}

}  // namespace
}  // namespace sluice::data::source_files_test
