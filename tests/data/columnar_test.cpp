#include "data/columnar.h"

#include <gmock/gmock.h>

#include <string>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::data::columnar_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string format_error(const std::string& path, const std::string& bytes) {
  return message_of<UserError>([&] { columnar_format(path, bytes); });
}

TEST(Columnar, ANameCountsWhereTheBytesDoNotTell) {
  EXPECT_EQ(columnar_format("a.parquet", ""), ColumnarFormat::kParquet);
  EXPECT_EQ(columnar_format("a.parquet", "PA"), ColumnarFormat::kParquet);
  EXPECT_EQ(columnar_format("a.arrow", "ARR"), ColumnarFormat::kArrowFile);
  EXPECT_EQ(columnar_format("a.parquet", "ARROW1"), ColumnarFormat::kArrowFile);
  EXPECT_EQ(columnar_format("a.jsonl", "{}"), std::nullopt);
  EXPECT_EQ(columnar_format("parquet", ""), std::nullopt);
}

TEST(Columnar, WhatCannotBeReadIsSaidWithTheRemedy) {
  EXPECT_THAT(format_error("old.feather", "FEA1"),
              AllOf(HasSubstr("old.feather is of the first version of Feather"), HasSubstr("write_feather()")));
  EXPECT_THAT(format_error("a.parquet", "version https://git-lfs.github.com/spec/v1\n"),
              AllOf(HasSubstr("a.parquet is a pointer of Git LFS"), HasSubstr("git lfs pull")));
}

TEST(Columnar, ANameThatTheBytesContradictIsSaidWithWhatTheyAre) {
  EXPECT_THAT(format_error("data/a.parquet", "{\"prompt\": \"1+1=\"}\n"),
              AllOf(HasSubstr("data/a.parquet is no Parquet file, although its name says so: it begins as JSON does"),
                    HasSubstr("help: if it holds rows of JSON, call it a.jsonl")));
  EXPECT_THAT(format_error("a.arrow", "\xEF\xBB\xBF\n[{"),
              HasSubstr("a.arrow is no Arrow file, although its name says so: it begins as JSON"));
  EXPECT_THAT(format_error("a.parquet", "\x1F\x8B\x08"),
              AllOf(HasSubstr("begins as gzip does"), HasSubstr("call it a.jsonl.gz")));
  EXPECT_THAT(format_error("a.feather", "\x28\xB5\x2F\xFD\x04"),
              AllOf(HasSubstr("begins as zstd does"), HasSubstr("call it a.jsonl.zst")));
  EXPECT_THAT(
      format_error("a.parquet", "<!doctype html><html><body>"),
      AllOf(HasSubstr("it begins with \"<!doctype html>"), HasSubstr("another one was loaded in its place; fetch it again")));
  EXPECT_THAT(format_error("a.parquet", std::string(64, '\0')), HasSubstr("begins with \"\\u0000\\u0000"));
}

TEST(Columnar, ALibraryThatIsMissingIsSaidWithTheFileAndTheCommand) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { columnar_library("data/train.parquet", folder.path() / "none.so"); }),
              AllOf(HasSubstr("data/train.parquet is a Parquet file, which this build does not read yet"),
                    HasSubstr("./rlhf-run --setup --parquet fetches the library that reads it")));
}

TEST(Columnar, ALibraryThatCannotBeLoadedIsSaidWithWhatItNeeds) {
  const TemporaryFolder folder;
  const auto module = folder.write("broken.so", "this is no library");
  EXPECT_THAT(message_of<UserError>([&] { columnar_library("train.parquet", module); }),
              AllOf(HasSubstr("train.parquet is a Parquet file, and the library that reads it cannot be loaded"),
                    HasSubstr("broken.so"), HasSubstr("python3 -m pip install pyarrow==")));
}

}  // namespace
}  // namespace sluice::data::columnar_test
