#include "engine/schedule/stages/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::engine::packer_test {
namespace {

constexpr Column<int64_t> kTokens{"tokens", Extent::kToken};
constexpr Column<std::string> kText{"text", Extent::kGroup};

// A group of one sample of `tokens` tokens, which are all `index`.
Group group_of(int64_t index, int64_t tokens) {
  Group group;
  group.index = index;
  group.layout.add_sample(tokens, 1);
  group.layout.end_group();
  for (int64_t& token : group.write(kTokens)) token = index;
  group.write(kText)[0] = "group " + std::to_string(index);
  return group;
}

std::vector<int64_t> sizes(const std::vector<Packer::Batch>& batches) {
  std::vector<int64_t> sizes;
  for (const Packer::Batch& batch : batches) sizes.push_back(static_cast<int64_t>(batch.layout.tokens()));
  return sizes;
}

TEST(Packer, CutsWhenTheWorstGroupMightNotFit) {
  Packer packer(/*micro_batch_tokens=*/10, /*worst_group_tokens=*/4);
  EXPECT_TRUE(packer.add(group_of(0, 3)).empty());
  EXPECT_TRUE(packer.add(group_of(1, 3)).empty());                            // 6 + 4 fit
  EXPECT_THAT(sizes(packer.add(group_of(2, 2))), ::testing::ElementsAre(8));  // 8 + 4 do not
  EXPECT_TRUE(packer.add(group_of(3, 4)).empty());
  EXPECT_THAT(sizes(packer.finish_iteration()), ::testing::ElementsAre(4));
}

TEST(Packer, CutsWhereAnotherSlotBegins) {
  Packer packer(/*micro_batch_tokens=*/10, /*worst_group_tokens=*/4);
  const auto of_slot = [](int slot, int64_t index) {
    Group group = group_of(index, 2);
    group.slot = slot;
    return group;
  };
  EXPECT_TRUE(packer.add(of_slot(1, 2)).empty());
  EXPECT_TRUE(packer.add(of_slot(0, 0)).empty());
  const auto first = packer.add(of_slot(0, 1)), last = packer.finish_iteration();
  ASSERT_THAT(sizes(first), ::testing::ElementsAre(4));
  EXPECT_EQ(first[0].slot, 0);
  ASSERT_THAT(sizes(last), ::testing::ElementsAre(2));
  EXPECT_EQ(last[0].slot, 1);
}

TEST(Packer, GoesOnPastAGroupThatDoesNotCome) {
  Packer packer(/*micro_batch_tokens=*/10, /*worst_group_tokens=*/4);
  EXPECT_TRUE(packer.add(group_of(1, 4)).empty());
  EXPECT_TRUE(packer.add(group_of(3, 4)).empty());
  EXPECT_TRUE(packer.skip(2).empty());
  const auto batches = packer.skip(0);
  ASSERT_THAT(sizes(batches), ::testing::ElementsAre(8));
  EXPECT_THAT(batches[0].group_indices, ::testing::ElementsAre(1, 3));
  EXPECT_TRUE(packer.finish_iteration().empty());
}

TEST(Packer, KeepsTheOrderOfGroupsThatArriveInAnyOrder) {
  Packer packer(8, 2);
  EXPECT_TRUE(packer.add(group_of(2, 2)).empty());
  EXPECT_TRUE(packer.add(group_of(1, 2)).empty());
  EXPECT_TRUE(packer.add(group_of(0, 2)).empty());
  const auto batches = packer.add(group_of(3, 2));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_THAT(batches[0].columns[0].data.entries<int64_t>(), ::testing::ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(batches[0].columns[1].data.entries<std::string>(),
              ::testing::ElementsAre("group 0", "group 1", "group 2", "group 3"));
}

TEST(Packer, CountsMicroBatchesAndGroupsOfEachIterationFromZero) {
  Packer packer(2, 2);
  EXPECT_EQ(packer.add(group_of(0, 2))[0].id, 0);
  const auto second = packer.add(group_of(1, 2));
  EXPECT_EQ(second[0].id, 1);
  EXPECT_THAT(second[0].group_indices, ::testing::ElementsAre(1));
  EXPECT_TRUE(packer.finish_iteration().empty());
  EXPECT_EQ(packer.add(group_of(0, 2))[0].id, 0);
}

TEST(Packer, RefusesToEndAnIterationWithAGroupMissing) {
  Packer packer(8, 2);
  packer.add(group_of(1, 2));
  EXPECT_THROW(packer.finish_iteration(), InternalError);
}

}  // namespace
}  // namespace sluice::engine::packer_test
