#include "data/source_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::data {
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
  EXPECT_THAT(error({"empty"}), HasSubstr("empty holds no *.jsonl or *.jsonl.gz"));
}

TEST_F(SourceFilesTest, ParquetIsRefusedWithTheCommandThatConvertsIt) {
  folder_.write("train.parquet", "PAR1");
  for (const char* path : {"train.parquet", ".", "*.parquet"}) {
    const std::string text = error({path});
    EXPECT_THAT(text, HasSubstr("train.parquet is Parquet, which is not read: convert it to JSONL"));
    EXPECT_THAT(text, HasSubstr("python3 -m pip install --target .pyarrow pyarrow && PYTHONPATH=.pyarrow python3 -c \"import "));
    EXPECT_THAT(text, HasSubstr("train.jsonl'\n"));
  }
}

}  // namespace
}  // namespace sluice::data
