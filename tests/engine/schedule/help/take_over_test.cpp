#include "engine/schedule/help/take_over.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::engine::take_over_test {
namespace {

class TakeOverTest : public ::testing::Test {
 protected:
  static Group group_of(int64_t index, int64_t tokens) {
    Group group{.index = index};
    group.layout.add_sample(tokens, 0);
    group.layout.end_group();
    return group;
  }

  void made_here(int64_t index, int64_t tokens) {
    ASSERT_TRUE(making_.try_acquire(tokens));
    take_over_.made_here(group_of(index, tokens), Credit(making_, tokens));
  }

  // The index of what is taken over next; -1: nothing can be.
  int64_t take() {
    auto taken = take_over_.take();
    if (!taken) return -1;
    credits_.push_back(std::move(taken->credit));
    if (const auto* group = std::get_if<Group>(&taken->group)) return group->index;
    return std::get<GroupOwner::Made>(taken->group).group;
  }

  TokenBudget making_{100, [] {}}, trained_{10, [] {}};
  TakeOver take_over_{trained_};
  std::vector<Credit> credits_;
};

TEST_F(TakeOverTest, TakesGroupsInTheirOrderWhoeverHasMadeThem) {
  for (const int64_t group : {2, 3, 7}) take_over_.expect(group);
  take_over_.given_to(3, 1);
  made_here(7, 2);
  EXPECT_FALSE(take_over_.fits());
  take_over_.made_elsewhere({.group = 3, .rank = 1, .tokens = 4});
  EXPECT_EQ(take(), -1);
  made_here(2, 1);
  EXPECT_TRUE(take_over_.fits());
  EXPECT_EQ(take(), 2);
  EXPECT_EQ(take(), 3);
  EXPECT_EQ(take(), 7);
  EXPECT_EQ(take(), -1);
  EXPECT_EQ(trained_.in_flight(), 7);
}

TEST_F(TakeOverTest, ChangesCreditOfTheMakingForCreditOfTheTraining) {
  for (const int64_t group : {0, 1}) take_over_.expect(group);
  made_here(0, 6);
  made_here(1, 6);
  EXPECT_EQ(making_.in_flight(), 12);
  EXPECT_EQ(take(), 0);
  EXPECT_EQ(making_.in_flight(), 6);
  EXPECT_EQ(trained_.in_flight(), 6);
  EXPECT_FALSE(take_over_.fits()) << "6 + 6 tokens are more than 10";
  EXPECT_EQ(take(), -1);
  EXPECT_EQ(making_.in_flight(), 6) << "what could not be taken over is still there";
  credits_.clear();
  EXPECT_EQ(take(), 1);
}

TEST_F(TakeOverTest, SaysWhatTheNextGroupWaitsFor) {
  take_over_.show();
  EXPECT_EQ(take_over_.waits_for_rank(), -1);
  EXPECT_EQ(take_over_.waits_for_tokens(), 0);
  for (const int64_t group : {4, 5}) take_over_.expect(group);
  take_over_.given_to(4, 2);
  take_over_.show();
  EXPECT_EQ(take_over_.waits_for(), "group 4, which rank 2 makes");
  take_over_.made_elsewhere({.group = 4, .rank = 2, .tokens = 8});
  EXPECT_EQ(take(), 4);
  made_here(5, 3);
  take_over_.show();
  EXPECT_EQ(take_over_.waits_for(), "3 tokens of credit to train on: 8 of 10 are in flight");
}

TEST_F(TakeOverTest, RefusesAGroupOfARankThatWasNotGivenIt) {
  take_over_.expect(4);
  EXPECT_THROW(take_over_.made_elsewhere({.group = 4, .rank = 2}), InternalError);
  take_over_.given_to(4, 1);
  EXPECT_THROW(take_over_.made_elsewhere({.group = 4, .rank = 2}), InternalError);
}

}  // namespace
}  // namespace sluice::engine::take_over_test
