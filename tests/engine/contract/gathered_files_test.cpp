#include "engine/contract/gathered_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "engine/contract/run_folder.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::gathered_files_test {
namespace {

TEST(GatheredFiles, RankZeroHasTheLinesOfAll) {
  const TemporaryFolder folder;
  GatheredFiles first, second;
  GatheredFile ours = RunFolder{.path = folder.path(), .gathered = &first}.append_to("texts/a.jsonl");
  GatheredFile theirs = RunFolder{.path = folder.path(), .is_ours = false, .gathered = &second}.append_to("texts/a.jsonl");
  ours.write("one\n");
  theirs.write("two\n");
  theirs.write("three\n");
  EXPECT_EQ(theirs.size(), 0);
  first.append(second.take());
  EXPECT_EQ(read_file(folder.path() / "texts/a.jsonl"), "one\ntwo\nthree\n");
  EXPECT_EQ(ours.size(), 14);
  first.append(second.take());  // nothing twice
  EXPECT_EQ(ours.size(), 14);
}

TEST(GatheredFiles, OfAnotherRankNothingIsOpened) {
  const TemporaryFolder folder;
  GatheredFiles files;
  EXPECT_TRUE(files.empty());
  RunFolder{.path = folder.path() / "run", .is_ours = false, .gathered = &files}.append_to("a.jsonl").write("one\n");
  EXPECT_FALSE(files.empty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST(GatheredFiles, LinesForAFileThatIsNotThereAreABug) {
  const TemporaryFolder folder;
  GatheredFiles first, second;
  RunFolder{.path = folder.path(), .gathered = &first}.append_to("a.jsonl");
  RunFolder{.path = folder.path(), .is_ours = false, .gathered = &second}.append_to("b.jsonl").write("one\n");
  EXPECT_THROW(first.append(second.take()), InternalError);
}

}  // namespace
}  // namespace sluice::engine::gathered_files_test
