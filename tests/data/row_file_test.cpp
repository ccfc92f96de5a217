#include "data/row_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "tests/data/data_files.h"
#include "tests/temporary_folder.h"

namespace sluice::data::row_file_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RowFileTest : public testing::Test {
 protected:
  std::string text(const std::string& content) {
    const RowFile file(folder_.write("rows", content), folder_.path());
    return file.row(0, static_cast<size_t>(file.size()));
  }

  std::string error(const std::string& content) {
    return message_of<UserError>([&] { text(content); });
  }

  TemporaryFolder folder_;
};

TEST_F(RowFileTest, PlainAndCompressedTextAreTheSame) {
  const std::string rows = "{\"a\": 1}\n{\"a\": 2}\n";
  EXPECT_EQ(text(rows), rows);
  EXPECT_EQ(text(gzip(rows)), rows);
}

TEST_F(RowFileTest, ZstdIsTheSameText) {
  const std::string rows = "{\"a\": 1}\n{\"a\": 2}\n";
  EXPECT_EQ(text(zstd(rows)), rows);
  EXPECT_EQ(text(zstd("")), "");
  EXPECT_EQ(text(zstd("a\nb") + zstd("") + zstd_skippable("made by pzstd") + zstd("c\n")), "a\nbc\n");
  EXPECT_EQ(text(zstd_skippable("made by pzstd") + zstd(rows)), rows);
}

TEST_F(RowFileTest, EveryTruncationOfZstdIsAnErrorThatNamesTheFile) {
  const std::string whole = zstd("{\"prompt\": \"1 + 1\"}\n{\"prompt\": \"2 + 2\"}\n");
  for (size_t bytes = 4; bytes < whole.size(); ++bytes)
    EXPECT_THAT(error(whole.substr(0, bytes)), HasSubstr("rows: the compressed data is cut off, at byte")) << bytes;
}

TEST_F(RowFileTest, DamageOfZstdIsAnError) {
  std::string content = zstd(std::string(1000, 'x') + "abcdefgh\n");
  content.back() ^= 0x40;  // of the checksum
  EXPECT_THAT(error(content), HasSubstr("rows: the compressed data is damaged (Restored data doesn't match checksum)"));
  EXPECT_THAT(error(zstd("a\n") + "{\"a\": 1}\n"), HasSubstr("something that is not zstd follows the compressed data"));
}

TEST_F(RowFileTest, ZstdThatUnfoldsWithoutEndOrTakesMuchMemoryIsRefused) {
  EXPECT_THAT(error(zstd(std::string(size_t{160} << 20, '\n'))), HasSubstr("rows unfolds to more than 200 times its size"));
  EXPECT_THAT(error(zstd(std::string(size_t{100} << 20, 'a'))), HasSubstr("rows:1: a line of more than 64 MiB"));
  EXPECT_THAT(error(zstd(std::string(1000, 'a'), /*window_log=*/28)), HasSubstr("needs more than 128 MiB of memory"));
}

TEST_F(RowFileTest, MembersAreJoinedEmptyOnesToo) {
  EXPECT_EQ(text(gzip("a\nb") + gzip("") + gzip("c\n") + gzip("")), "a\nbc\n");
}

TEST_F(RowFileTest, ZerosBehindTheLastMemberArePadding) { EXPECT_EQ(text(gzip("a\n") + std::string(512, '\0')), "a\n"); }

TEST_F(RowFileTest, TextOfManyPiecesIsWhole) {
  std::string rows;
  for (int i = 0; i < 200'000; ++i) rows += std::to_string(i * 7919) + "\n";
  EXPECT_EQ(text(gzip(rows)), rows);
}

TEST_F(RowFileTest, EveryTruncationIsAnErrorThatNamesTheFile) {
  const std::string whole = gzip("{\"prompt\": \"1 + 1\"}\n{\"prompt\": \"2 + 2\"}\n");
  for (size_t bytes = 2; bytes < whole.size(); ++bytes) {
    const std::string text = error(whole.substr(0, bytes));
    EXPECT_THAT(text, HasSubstr("rows: the compressed data is cut off")) << bytes;
    EXPECT_THAT(text, HasSubstr("of " + std::to_string(bytes)));
  }
}

TEST_F(RowFileTest, ATruncatedSecondMemberIsAnError) {
  const std::string second = gzip("b\n");
  EXPECT_THAT(error(gzip("a\n") + second.substr(0, second.size() - 4)), HasSubstr("cut off"));
}

TEST_F(RowFileTest, ADamagedByteIsAnError) {
  std::string content = gzip(std::string(1000, 'x') + "abcdefgh\n");
  content[content.size() - 6] ^= 0x40;  // of the checksum
  EXPECT_THAT(error(content), HasSubstr("rows: the compressed data is damaged (incorrect data check)"));
}

TEST_F(RowFileTest, SomethingElseBehindTheDataIsAnError) {
  EXPECT_THAT(error(gzip("a\n") + "{\"a\": 1}\n"), HasSubstr("something that is not gzip follows the compressed data"));
}

TEST_F(RowFileTest, AGigabyteInOneLineIsRefusedEarly) {
  EXPECT_THAT(error(gzip_of_one_letter('a', size_t{1} << 30)), HasSubstr("rows:1: a line of more than 64 MiB"));
}

TEST_F(RowFileTest, ATextThatUnfoldsWithoutEndIsRefused) {
  EXPECT_THAT(error(gzip_of_one_letter('\n', size_t{160} << 20)), HasSubstr("rows unfolds to more than 200 times its size"));
}

TEST_F(RowFileTest, NothingIsLeftInTheScratchFolder) {
  const fs::path file = folder_.write("rows", gzip("a\n"));
  fs::create_directories(folder_.path() / "scratch");
  const RowFile open(file, folder_.path() / "scratch");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "scratch"));
  EXPECT_EQ(open.row(0, 2), "a\n");
}

TEST_F(RowFileTest, AScratchFolderThatIsMissingIsNamed) {
  const fs::path file = folder_.write("rows", gzip("a\n"));
  EXPECT_THAT(message_of<UserError>([&] { RowFile(file, folder_.path() / "none"); }), HasSubstr("TMPDIR names another folder"));
}

TEST_F(RowFileTest, WhatIsColumnarItsFirstBytesTell) {
  using namespace std::string_literals;
  const auto format = [&](const std::string& content) {
    return RowFile(folder_.write("rows", content), folder_.path()).columnar();
  };
  EXPECT_EQ(format("PAR1\x15\x04"), ColumnarFormat::kParquet);
  EXPECT_EQ(format("ARROW1\0\0"s), ColumnarFormat::kArrowFile);
  EXPECT_EQ(format("\xFF\xFF\xFF\xFF\x10"), ColumnarFormat::kArrowStream);
  EXPECT_EQ(format("{\"a\": 1}"), std::nullopt);
}

TEST_F(RowFileTest, RowsOfAColumnarFileAreReadBackByPlace) {
  RowFile file(folder_.write("rows", "PAR1"), folder_.path());
  EXPECT_EQ(file.append("{\"a\":1}\n"), 0);
  EXPECT_EQ(file.append("{\"a\":2}\n"), 8);
  EXPECT_EQ(file.row(8, 7), "{\"a\":2}");
  EXPECT_EQ(file.size(), 16u);
}

TEST_F(RowFileTest, AColumnarFileThatUnfoldsWithoutEndIsRefused) {
  RowFile file(folder_.write("rows", "PAR1"), folder_.path());
  const std::string rows(size_t{128} << 20, ' ');
  for (int i = 0; i < 8; ++i) file.append(rows);
  EXPECT_THAT(message_of<UserError>([&] { file.append("x"); }),
              HasSubstr("rows unfolds to more than 1 GiB, and 200 times its size"));
}

// Of a compressed file the text is our own.
TEST_F(RowFileTest, OnlyAPlainFileCanBeCutShort) {
  const fs::path plain = folder_.write("plain", "a\nb\n"), packed = folder_.write("packed", gzip("a\nb\n"));
  const RowFile rows(plain), unpacked(packed, folder_.path());
  for (const fs::path& file : {plain, packed}) fs::resize_file(file, 0);
  EXPECT_THAT(message_of<UserError>([&] { rows.row(2, 1); }),
              HasSubstr("plain has been cut short while it is being read: 0 bytes, 4"));
  EXPECT_EQ(unpacked.row(2, 1), "b");
}

TEST_F(RowFileTest, LongestTextIsTheLongestLine) {
  const std::string rows = "{}\n" + std::string(1000, 'x') + "\n{}";
  EXPECT_EQ(longest_text(folder_.write("plain", rows)), 1000);
  EXPECT_EQ(longest_text(folder_.write("packed", gzip(rows))), 1000);
  EXPECT_EQ(longest_text(folder_.write("zstd", zstd(rows))), 1000);
  EXPECT_EQ(longest_text(folder_.path() / "none"), 0);
}

}  // namespace
}  // namespace sluice::data::row_file_test
