#include "data/dataset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "tests/data/data_files.h"
#include "tests/temporary_folder.h"

namespace sluice::data::dataset_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DatasetTest : public testing::Test {
 protected:
  // A file of rows NAME0, NAME1, ...
  std::filesystem::path write(const std::string& name, int rows, bool packed = false) {
    std::string text;
    for (int i = 0; i < rows; ++i) text += "{\"prompt\": \"" + name + std::to_string(i) + "\"}\n";
    return folder_.write(name + ".jsonl", packed ? gzip(text) : text);
  }

  Dataset open(DatasetOptions options) {
    options.scratch = folder_.path();
    return Dataset(options, {{"prompt", "prompt_field"}});
  }

  // "-" where the data has ended.
  static std::vector<std::string> prompts(Dataset& data, uint64_t begin, uint64_t end) {
    std::vector<std::string> prompts;
    for (uint64_t i = begin; i < end; ++i) {
      const auto id = data.row_at(i);
      prompts.push_back(id ? data.texts(*id)[0] : "-");
    }
    return prompts;
  }

  TemporaryFolder folder_;
};

TEST_F(DatasetTest, FilesComeOneBehindTheOther) {
  Dataset data = open({.paths = {write("b", 2), write("a", 2, true)}, .shuffle = false});
  EXPECT_THAT(prompts(data, 0, 5), ElementsAre("b0", "b1", "a0", "a1", "b0"));
}

TEST_F(DatasetTest, EachEpochIsAPermutationOfAllRowsInAnotherOrder) {
  Dataset data = open({.paths = {write("a", 60), write("b", 40)}});
  const std::vector<std::string> first = prompts(data, 0, 100), second = prompts(data, 100, 200);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 100u);
  EXPECT_TRUE(std::ranges::is_permutation(first, second));
  EXPECT_NE(first, second);
}

TEST_F(DatasetTest, AnotherSeedIsAnotherOrder) {
  const auto path = write("a", 100);
  Dataset one = open({.paths = {path}, .seed = 1}), again = open({.paths = {path}, .seed = 1}),
          two = open({.paths = {path}, .seed = 2});
  EXPECT_EQ(prompts(one, 0, 100), prompts(again, 0, 100));
  EXPECT_NE(prompts(one, 0, 100), prompts(two, 0, 100));
}

TEST_F(DatasetTest, WeightedSourcesAreShuffledAndRepeatedForThemselves) {
  Dataset data = open({.paths = {write("a", 30), write("b", 10)}, .weights = {3, 1}});
  const std::vector<std::string> drawn = prompts(data, 0, 80);
  std::vector<std::string> a, b;
  for (const std::string& prompt : drawn) (prompt[0] == 'a' ? a : b).push_back(prompt);
  ASSERT_EQ(a.size(), 60u);
  EXPECT_EQ(std::set(a.begin(), a.begin() + 30).size(), 30u);
  EXPECT_EQ(std::set(b.begin(), b.begin() + 10).size(), 10u);
  EXPECT_EQ(std::set(b.begin() + 10, b.end()).size(), 10u);
}

TEST_F(DatasetTest, WeightedDataEndsWhereASourceIsDueThatWasReadSoManyTimes) {
  Dataset data = open({.paths = {write("a", 3), write("b", 100)}, .weights = {1, 1}, .shuffle = false, .epochs = 2});
  const std::vector<std::string> drawn = prompts(data, 0, 20);
  const size_t end = static_cast<size_t>(std::ranges::find(drawn, "-") - drawn.begin());
  EXPECT_EQ(std::count_if(drawn.begin(), drawn.begin() + static_cast<ptrdiff_t>(end), [](const auto& p) { return p[0] == 'a'; }),
            6);
}

TEST_F(DatasetTest, DroppedRowsNeverCome) {
  Dataset data = open({.paths = {write("a", 50), write("b", 50)}});
  const size_t dropped = data.keep_only([&](Dataset::RowId id) { return data.texts(id)[0].back() != '7'; });
  EXPECT_EQ(dropped, 10u);
  EXPECT_EQ(data.rows(), 90u);
  const std::vector<std::string> drawn = prompts(data, 0, 90);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 90u);
  for (const std::string& prompt : drawn) EXPECT_NE(prompt.back(), '7');
}

TEST_F(DatasetTest, ASourceOfWhichNothingIsLeftIsAnError) {
  Dataset data = open({.paths = {write("a", 5), write("b", 5)}, .weights = {1, 1}});
  EXPECT_THAT(message_of<UserError>([&] { data.keep_only([](Dataset::RowId id) { return id.source == 0; }); }),
              HasSubstr("b.jsonl is left: all 5 rows were dropped"));
}

TEST_F(DatasetTest, ARowIsShownInItsOwnFileAlsoAfterRowsWereDropped) {
  Dataset data = open({.paths = {write("a", 3), write("b", 3), write("c", 3)}, .shuffle = false});
  data.keep_only([&](Dataset::RowId id) { return data.texts(id)[0][0] != 'b' && data.texts(id)[0] != "c0"; });
  const SourceSpan where = data.where(*data.row_at(3));
  EXPECT_THAT(where.source->name, HasSubstr("c.jsonl"));
  EXPECT_EQ(where.line, 2);
}

TEST_F(DatasetTest, ASavedPositionGoesOnWithTheRowsOfAnUninterruptedRun) {
  const DatasetOptions options{.paths = {write("a", 31), write("b", 17), write("c", 5)}, .weights = {0.5, 0.3, 0.2}, .seed = 4};
  Dataset whole = open(options);
  const std::vector<std::string> all = prompts(whole, 0, 300);
  for (const uint64_t stop : {0, 1, 52, 53, 170, 299}) {
    Dataset before = open(options);
    prompts(before, 0, stop);
    Dataset after = open(options);
    const uint64_t next = after.resume(before.position(stop));
    EXPECT_EQ(prompts(after, next, 300), std::vector(all.begin() + static_cast<ptrdiff_t>(stop), all.end()));
  }
}

TEST_F(DatasetTest, APositionOfOtherDataIsRefused) {
  const auto path = write("a", 10);
  const DatasetPosition saved = open({.paths = {path}, .seed = 1}).position(4);
  EXPECT_THAT(message_of<UserError>([&] { open({.paths = {path}, .seed = 2}).resume(saved); }),
              HasSubstr("row 4 is another one now"));
  write("a", 11);
  EXPECT_THROW(open({.paths = {path}, .seed = 1}).resume(saved), UserError);
}

}  // namespace
}  // namespace sluice::data::dataset_test
