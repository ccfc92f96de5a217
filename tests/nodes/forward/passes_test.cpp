#include "nodes/forward/passes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::nodes::passes_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Passes = std::vector<std::vector<size_t>>;

Passes cut(const std::vector<int64_t>& tokens, int64_t limit) { return cut_into_passes(tokens, limit); }

TEST(Passes, AreOneWhereAllFits) { EXPECT_THAT(cut({3, 4, 3}, 10), ElementsAre(ElementsAre(0, 1, 2))); }

TEST(Passes, AreNoneOfNothing) { EXPECT_THAT(cut({}, 10), IsEmpty()); }

TEST(Passes, FillUpWithWhatComesLater) { EXPECT_THAT(cut({6, 7, 4, 3}, 10), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3))); }

// In order 1 + 1, 9 and 9 would be three.
TEST(Passes, TakeTheLargestFirstWhereThatFillsBetter) {
  EXPECT_THAT(cut({1, 1, 9, 9}, 10), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(Passes, KeepTheOrderWhereTheSizeSavesNothing) {
  EXPECT_THAT(cut({4, 6, 10, 10}, 10), ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3)));
}

TEST(Passes, OfASampleThatIsLongerThanOneAreABug) { EXPECT_THROW(cut({3, 11}, 10), InternalError); }

TEST(Passes, OfSomeSamplesOfAMicroBatchNameThem) {
  engine::Layout layout;
  for (const int64_t tokens : {5, 2, 5, 4, 1}) layout.add_sample(tokens, 0);
  layout.end_group();
  EXPECT_THAT(passes_of(layout, std::vector<size_t>{1, 2, 4}, 6), ElementsAre(ElementsAre(1, 4), ElementsAre(2)));
}

// The simplest cut: each unit into the first pass that has room, in order.
size_t first_fit_passes(const std::vector<int64_t>& tokens, int64_t limit) {
  std::vector<int64_t> used;
  for (const int64_t unit : tokens) {
    const auto place = std::ranges::find_if(used, [&](int64_t sum) { return sum + unit <= limit; });
    if (place == used.end())
      used.push_back(unit);
    else
      *place += unit;
  }
  return used.size();
}

TEST(Passes, OfAnyLengthsHaveEverySampleOnceAndNoneIsTooLargeAndTheyAreNeverMoreThanFirstFit) {
  RandomStream random(1, 0);
  for (int round = 0; round < 2000; ++round) {
    const auto limit = static_cast<int64_t>(1 + random.below(40));
    std::vector<int64_t> tokens;
    for (uint64_t left = random.below(60); left > 0; --left)
      tokens.push_back(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(limit))));
    const Passes passes = cut(tokens, limit);
    std::vector<int> times(tokens.size());
    for (const std::vector<size_t>& pass : passes) {
      int64_t sum = 0;
      for (const size_t unit : pass) ++times.at(unit), sum += tokens[unit];
      ASSERT_FALSE(pass.empty());
      ASSERT_LE(sum, limit);
      ASSERT_TRUE(std::ranges::is_sorted(pass));
    }
    ASSERT_TRUE(std::ranges::all_of(times, [](int count) { return count == 1; }));
    ASSERT_LE(passes.size(), first_fit_passes(tokens, limit));
    ASSERT_EQ(cut(tokens, limit), passes);
  }
}

}  // namespace
}  // namespace sluice::nodes::passes_test
