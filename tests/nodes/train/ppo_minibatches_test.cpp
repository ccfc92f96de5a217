#include "nodes/train/ppo_minibatches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::nodes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

TEST(PpoMinibatches, EveryGroupIsDealtOnceAndPartsAreAlike) {
  std::vector<size_t> all;
  for (const std::vector<size_t>& part : deal_groups(11, 4, 17, 3, 0)) {
    EXPECT_THAT(part.size(), AllOf(Ge(2u), Le(3u)));
    EXPECT_TRUE(std::ranges::is_sorted(part));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::ranges::sort(all);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(PpoMinibatches, EpochsAndIterationsAreDealtAnew) {
  const auto dealt = deal_groups(64, 2, 17, 3, 0);
  EXPECT_EQ(deal_groups(64, 2, 17, 3, 0), dealt);
  EXPECT_NE(deal_groups(64, 2, 17, 3, 1), dealt);
  EXPECT_NE(deal_groups(64, 2, 17, 4, 0), dealt);
  EXPECT_NE(deal_groups(64, 2, 18, 3, 0), dealt);
}

TEST(PpoMinibatches, SomePartsAreEmptyWhenThereAreFewerGroups) {
  const auto dealt = deal_groups(1, 3, 17, 0, 0);
  EXPECT_EQ(dealt.size(), 3u);
  EXPECT_EQ(std::ranges::count_if(dealt, [](const auto& part) { return part.empty(); }), 2);
}

TEST(PpoMinibatches, GroupsOfAMicroBatchAreCountedFromItsFirst) {
  EXPECT_THAT(groups_within(std::vector<size_t>{1, 4, 6, 9}, 4, 3), ElementsAre(0, 2));
  EXPECT_THAT(groups_within(std::vector<size_t>{1, 9}, 4, 3), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes
