#include "engine/schedule/help/owners_seen.h"

#include <gtest/gtest.h>

namespace sluice::engine::owners_seen_test {
namespace {

constexpr int kPath = 0;

Round round_of(int64_t iteration, int64_t round = 0) { return {.iteration = iteration, .number = round}; }
OwnerNews has_some(Round round) { return {.round = round, .has_groups = true}; }
OwnerNews has_none(Round round) { return {.round = round}; }
OwnerNews needs_again(Round round) { return {.round = round, .has_again = true}; }

TEST(OwnersSeen, NobodyOffersBeforeOwnersHaveSaidSo) {
  const OwnersSeen owners(1, {0, 1}, 4);
  EXPECT_FALSE(owners.next(kPath));
  EXPECT_FALSE(owners.some_offer(kPath));
  EXPECT_EQ(owners.floor(kPath), 4) << "those that were complete before the run";
}

TEST(OwnersSeen, TheEarliestIsNextAndAmongEqualsWhoIsAskedFirst) {
  OwnersSeen owners(1, {1, 0}, 0);
  owners.take(kPath, 0, has_some(round_of(0)));
  owners.take(kPath, 1, has_some(round_of(0)));
  EXPECT_EQ(owners.next(kPath)->owner, 1);
  owners.take(kPath, 1, has_some(round_of(1)));
  EXPECT_EQ(owners.next(kPath)->owner, 0);
  EXPECT_EQ(owners.next(kPath)->round, round_of(0));
}

// An owner may wait for groups of that iteration with what the others need to get on.
TEST(OwnersSeen, NobodyIsAskedForALaterOneWhileAnOwnerMayHaveAnEarlierOne) {
  OwnersSeen owners(1, {0, 1}, 0);
  owners.take(kPath, 0, has_some(round_of(1)));
  owners.take(kPath, 1, has_none(round_of(0)));
  EXPECT_FALSE(owners.next(kPath)) << "a later round of it may have some";
  EXPECT_TRUE(owners.some_offer(kPath));
  owners.refused(kPath, {.owner = 1, .round = round_of(0)});
  EXPECT_EQ(owners.next(kPath)->round, round_of(1)) << "it has said that none is left";
  EXPECT_TRUE(owners.have_given_all_before(kPath, 1));
}

TEST(OwnersSeen, WhoRefusesIsNotAskedAgainBeforeItHasNews) {
  OwnersSeen owners(1, {0}, 0);
  owners.take(kPath, 0, has_some(round_of(0)));
  owners.refused(kPath, *owners.next(kPath));
  EXPECT_FALSE(owners.next(kPath));
  owners.take(kPath, 0, has_some(round_of(0, 1)));
  EXPECT_EQ(owners.next(kPath)->round, round_of(0, 1));
}

TEST(OwnersSeen, ARefusalThatCrossesNewsIsOfTheOldPlace) {
  OwnersSeen owners(1, {0}, 0);
  owners.take(kPath, 0, has_some(round_of(0)));
  const auto asked = *owners.next(kPath);
  owners.take(kPath, 0, has_some(round_of(0, 1)));
  owners.refused(kPath, asked);
  EXPECT_TRUE(owners.next(kPath));
}

TEST(OwnersSeen, OnesThatWereGivenToALostRankAreOfTheEarliestIteration) {
  OwnersSeen owners(1, {0, 1}, 0);
  owners.take(kPath, 0, needs_again(round_of(2)));
  owners.take(kPath, 1, has_some(round_of(1)));
  EXPECT_FALSE(owners.next_again(kPath)) << "rank 1 has an iteration before";
  owners.take(kPath, 1, has_some(round_of(2)));
  ASSERT_TRUE(owners.next_again(kPath));
  EXPECT_EQ(owners.next_again(kPath)->owner, 0);
  EXPECT_TRUE(owners.next_again(kPath)->only_again);
  owners.refused(kPath, *owners.next_again(kPath));
  EXPECT_FALSE(owners.next_again(kPath));
}

TEST(OwnersSeen, WhoHasNoneToGiveAgainMayHaveOthers) {
  OwnersSeen owners(1, {0}, 0);
  owners.take(kPath, 0, {.round = round_of(0), .has_groups = true, .has_again = true});
  owners.refused(kPath, *owners.next_again(kPath));
  EXPECT_TRUE(owners.next(kPath));
}

TEST(OwnersSeen, AllMustBeOver) {
  OwnersSeen owners(2, {0, 1}, 0);
  owners.take(kPath, 0, {.round = round_of(3), .is_over = true});
  EXPECT_FALSE(owners.is_over(kPath));
  owners.take(kPath, 1, {.round = round_of(3), .is_over = true});
  EXPECT_TRUE(owners.is_over(kPath));
  EXPECT_FALSE(owners.is_over(1)) << "the other path";
}

TEST(OwnersSeen, RanksThatAreNotAskedAreOfNoInterest) {
  OwnersSeen owners(1, {0}, 0);
  owners.take(kPath, 7, has_some(round_of(0)));
  EXPECT_FALSE(owners.some_offer(kPath));
}

}  // namespace
}  // namespace sluice::engine::owners_seen_test
