#include "nodes/train/ppo_minibatches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace sluice::nodes::ppo_minibatches_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;
using ::testing::UnorderedElementsAreArray;

TEST(PpoMinibatches, EveryGroupIsDealtOnceAndPartsAreAlike) {
  std::vector<size_t> all;
  for (const std::vector<size_t>& part : deal_groups(11, {4, 17, 3, 0}, 0)) {
    EXPECT_THAT(part.size(), AllOf(Ge(2u), Le(3u)));
    EXPECT_TRUE(std::ranges::is_sorted(part));
    all.insert(all.end(), part.begin(), part.end());
  }
  std::ranges::sort(all);
  EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(PpoMinibatches, EpochsAndIterationsAreDealtAnew) {
  const auto dealt = deal_groups(64, {2, 17, 3, 0}, 0);
  EXPECT_EQ(deal_groups(64, {2, 17, 3, 0}, 0), dealt);
  EXPECT_NE(deal_groups(64, {2, 17, 3, 1}, 0), dealt);
  EXPECT_NE(deal_groups(64, {2, 17, 4, 0}, 0), dealt);
  EXPECT_NE(deal_groups(64, {2, 18, 3, 0}, 0), dealt);
  EXPECT_NE(deal_groups(64, {2, 17, 3, 0}, 1), dealt);
}

TEST(PpoMinibatches, SomePartsAreEmptyWhenThereAreFewerGroups) {
  const auto dealt = deal_groups(1, {3, 17, 0, 0}, 0);
  EXPECT_EQ(dealt.size(), 3u);
  EXPECT_EQ(std::ranges::count_if(dealt, [](const auto& part) { return part.empty(); }), 2);
}

// Who has only some of the slots deals their groups as who has all.
TEST(PpoMinibatches, TheGroupsOfASlotAreDealtWhateverElseThereIs) {
  const std::vector<DealtBatch> all{{0, 3}, {0, 2}, {1, 4}, {2, 1}, {2, 6}}, last{{2, 1}, {2, 6}};
  const Deal deal{.parts = 2, .seed = 17, .iteration = 3, .epoch = 1};
  for (const int64_t part : {0, 1}) {
    const ChosenGroups of_all = groups_of_part(all, deal, part), of_last = groups_of_part(last, deal, part);
    ASSERT_EQ(of_all.size(), all.size());
    EXPECT_THAT(of_last, ElementsAre(of_all[3], of_all[4]));
  }
}

TEST(PpoMinibatches, GroupsOfAMicroBatchAreCountedFromItsFirst) {
  const std::vector<DealtBatch> batches{{0, 3}, {1, 5}, {0, 4}, {1, 2}};
  const Deal deal{.parts = 3, .seed = 1};
  std::vector<std::vector<size_t>> chosen(batches.size());
  for (int64_t part = 0; part < deal.parts; ++part) {
    const ChosenGroups of_part = groups_of_part(batches, deal, part);
    for (size_t i = 0; i < batches.size(); ++i) {
      EXPECT_TRUE(std::ranges::is_sorted(of_part[i]));
      chosen[i].insert(chosen[i].end(), of_part[i].begin(), of_part[i].end());
    }
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<size_t> groups(batches[i].groups);
    std::iota(groups.begin(), groups.end(), size_t{0});
    EXPECT_THAT(chosen[i], UnorderedElementsAreArray(groups));
  }
}

// Seven groups in two parts are three and four: the larger part is another one in the next slot.
TEST(PpoMinibatches, SlotsDoNotGiveTheSamePartMore) {
  const Deal deal{.parts = 2, .seed = 5};
  EXPECT_EQ(deal_groups(7, deal, 0)[0].size(), deal_groups(7, deal, 1)[1].size());
  EXPECT_NE(deal_groups(7, deal, 0)[0].size(), deal_groups(7, deal, 1)[0].size());
}

}  // namespace
}  // namespace sluice::nodes::ppo_minibatches_test
