#include "engine/plan/rank_groups.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace sluice::engine::rank_groups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

// Owners lead passes of so many ranks, and with roles samplers lead so many that sample together.
Plan plan_of(int owners, int passes, int samplers, int sampling) {
  Plan plan;
  plan.cluster.sequence_parallel = passes;
  plan.cluster.tensor_parallel = sampling;
  plan.ranks = owners * passes + samplers * sampling;
  if (samplers == 0) return plan;
  plan.roles = {{.name = "train", .where = {}, .ranks = owners * passes},
                {.name = "rollout", .where = {}, .first_rank = owners, .ranks = samplers * sampling}};
  return plan;
}

std::vector<int> numbers_up_to(int end) {
  std::vector<int> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void expect_parted(const Plan& plan) {
  std::vector<int> trainers, receivers;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<int> group = group_of(plan, rank);
    EXPECT_EQ(std::ranges::count(group, rank), 1) << rank;
    EXPECT_EQ(std::ssize(std::set(group.begin(), group.end())), std::ssize(group));
    EXPECT_EQ(place_in_group(plan, rank) == 0, !plan.assists(rank)) << rank;
    for (const int other : group) {
      EXPECT_EQ(group_of(plan, other), group);
      EXPECT_EQ(plan.holds_trained(other), plan.holds_trained(rank)) << other << " with " << rank;
    }
    if (plan.holds_trained(rank))
      trainers.push_back(trainers_of(plan, rank).rank);
    else
      receivers.push_back(rank);
  }
  EXPECT_THAT(trainers, UnorderedElementsAreArray(numbers_up_to(plan.training_ranks())));
  EXPECT_EQ(receivers, plan.receivers());
}

TEST(RankGroups, EveryRankIsOfOneGroupThatOneOfThemLeads) {
  for (int owners = 1; owners <= 3; ++owners) {
    for (int passes = 1; passes <= 3; ++passes) {
      expect_parted(plan_of(owners, passes, 0, 1));
      for (int samplers = 1; samplers <= 3; ++samplers)
        for (int sampling = 1; sampling <= 3; ++sampling) expect_parted(plan_of(owners, passes, samplers, sampling));
    }
  }
}

// Ranks 0-1 train, 2-3 sample, 4-5 assist these, 6-9 those.
TEST(RankGroups, ThoseThatAssistSamplingComeBeforeThoseThatAssistPasses) {
  const Plan plan = plan_of(2, 3, 2, 2);
  EXPECT_THAT(group_of(plan, 4), ElementsAre(2, 4));
  EXPECT_THAT(group_of(plan, 3), ElementsAre(3, 5));
  EXPECT_THAT(group_of(plan, 0), ElementsAre(0, 6, 7));
  EXPECT_THAT(group_of(plan, 9), ElementsAre(1, 8, 9));
  EXPECT_EQ(trainers_of(plan, 9).rank, 5);
}

// Ranks 0-3 lead passes, 4-7 assist them; two hosts have four each, next to each other.
TEST(RankGroups, RanksNextToEachOtherHaveWeightsInCommon) {
  Plan plan = plan_of(4, 2, 0, 1);
  EXPECT_THAT(sharing_with(plan, 6).members, UnorderedElementsAreArray(numbers_up_to(8)));
  plan.cluster.shard_ranks = 4;
  const SharingRanks second = sharing_with(plan, 6);
  EXPECT_EQ(second.place, 2);
  EXPECT_EQ(second.group, 1);
  EXPECT_THAT(second.members, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(second.counterparts, ElementsAre(trainers_of(plan, 2).rank, trainers_of(plan, 6).rank));
}

// All see the same groups, each itself in its place; and everyone is somebody's counterpart.
TEST(RankGroups, ThoseThatShareAgree) {
  for (const auto& [passes, samplers, sharing] : {std::tuple{1, 0, 3}, {2, 0, 4}, {3, 2, 6}, {2, 3, 2}, {1, 1, 1}}) {
    Plan plan = plan_of(6, passes, samplers, 1);
    plan.cluster.shard_ranks = sharing;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (!plan.holds_trained(rank)) continue;
      const SharingRanks own = sharing_with(plan, rank);
      EXPECT_EQ(own.count(), sharing);
      EXPECT_EQ(own.groups() * sharing, plan.training_ranks());
      EXPECT_EQ(own.members[static_cast<size_t>(own.place)], rank);
      EXPECT_EQ(own.counterparts[static_cast<size_t>(own.group)], trainers_of(plan, rank).rank);
      for (const int member : own.members) {
        EXPECT_EQ(sharing_with(plan, member).members, own.members);
        EXPECT_EQ(sharing_with(plan, member).group, own.group);
      }
    }
  }
}

// Ranks 2 to 5 sample, of which the first three and a rank that trains are on one host.
TEST(RankGroups, ThoseThatSampleOnOneHostHaveVersionsInCommon) {
  const Plan plan = plan_of(2, 1, 4, 1);
  const std::vector<int> hosts{0, 1, 1, 1, 1, 5};
  const SharingRanks second = sampling_beside(plan, 3, hosts);
  EXPECT_THAT(second.members, ElementsAre(2, 3, 4));
  EXPECT_EQ(second.place, 1);
  EXPECT_THAT(sampling_beside(plan, 5, hosts).members, ElementsAre(5));
}

TEST(RankGroups, WhoSamplesWithOthersOrMayBeLostHasItsVersionsAlone) {
  EXPECT_EQ(sampling_beside(plan_of(2, 1, 4, 2), 3, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}).count(), 1);
  Plan plan = plan_of(2, 1, 3, 1);
  plan.roles.back().elastic = true;
  EXPECT_THAT(sampling_beside(plan, 3, {0, 0, 0, 0, 0}).members, ElementsAre(3));
}

// Those that assist passes are no such ranks, though they are the last.
TEST(RankGroups, OnlyRanksThatSampleMayBeLost) {
  Plan plan = plan_of(2, 2, 3, 1);
  EXPECT_FALSE(plan.expendable().any());
  plan.roles.back().elastic = true;
  for (int rank = 0; rank < plan.ranks; ++rank) EXPECT_EQ(plan.expendable().has(rank), 2 <= rank && rank < 5) << rank;
}

}  // namespace
}  // namespace sluice::engine::rank_groups_test
