#include "engine/schedule/stages/sample_credit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/contract/columns/token_budget.h"

namespace sluice::engine::sample_credit_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Key = SampleCredit::Key;

/// One budget for all groups.
class BudgetSink final : public Rollout::Sink {
 public:
  explicit BudgetSink(int64_t tokens) : budget(tokens, [] {}) {}

  void return_credit(int64_t, int64_t tokens) override { budget.release(tokens); }
  bool take_credit(int64_t, int64_t tokens) override { return budget.try_acquire(tokens); }
  void finish(Group) override {}
  void worked(int64_t, int64_t) override {}

  TokenBudget budget;
};

/// Samples with prompts of 4 tokens that may become 20, and room for 2 more than they need.
class SampleCreditTest : public ::testing::Test {
 protected:
  void start(Key key) {
    ASSERT_TRUE(sink_.budget.try_acquire(credit_.least(4, 20)));
    credit_.start(key, 4, 20);
  }

  BudgetSink sink_{18};
  SampleCredit credit_{2};
};

TEST_F(SampleCreditTest, AsksOnlyWhenWhatItHoldsIsUsedUp) {
  start({0, 0});
  EXPECT_EQ(sink_.budget.in_flight(), 6);
  credit_.set_need({0, 0}, 6);
  credit_.settle(sink_);
  EXPECT_EQ(sink_.budget.in_flight(), 6);
  credit_.set_need({0, 0}, 7);
  credit_.settle(sink_);
  EXPECT_EQ(sink_.budget.in_flight(), 8);
}

TEST_F(SampleCreditTest, TheYoungestGivesWayAndRestartsInALaterStepWithAllThatItHad) {
  for (const Key key : {Key{0, 0}, Key{0, 1}, Key{1, 0}}) start(key);
  credit_.set_need({0, 0}, 8);
  SampleCredit::Changes changes = credit_.settle(sink_);
  EXPECT_THAT(changes.preempted, ElementsAre(Key{1, 0}));
  EXPECT_THAT(changes.restarted, IsEmpty());
  EXPECT_FALSE(credit_.holds({1, 0}));
  EXPECT_EQ(sink_.budget.in_flight(), 9 + 6);
  changes = credit_.settle(sink_);
  EXPECT_THAT(changes.restarted, IsEmpty());  // 3 are free, it wants 6
  credit_.end({0, 1}, 5, sink_);
  credit_.end({0, 0}, 7, sink_);
  changes = credit_.settle(sink_);
  EXPECT_THAT(changes.restarted, ElementsAre(Key{1, 0}));
  EXPECT_EQ(sink_.budget.in_flight(), 7 + 5 + 6);
}

TEST_F(SampleCreditTest, WhatHasEndedGivesWayTooWhileAnOlderSampleRuns) {
  for (const Key key : {Key{0, 0}, Key{1, 0}, Key{2, 0}}) start(key);
  credit_.end({2, 0}, 6, sink_);
  credit_.set_need({0, 0}, 8);
  EXPECT_THAT(credit_.settle(sink_).preempted, IsEmpty());  // it has nothing to stop
  EXPECT_FALSE(credit_.holds({2, 0}));
  for (const int64_t group : {0, 1}) credit_.end({group, 0}, 5, sink_);
  EXPECT_FALSE(credit_.may_finish(1));  // an older one is there
  EXPECT_TRUE(credit_.may_finish(0));
  credit_.settle(sink_);
  for (const int64_t group : {0, 1}) credit_.forget(group);
  EXPECT_TRUE(credit_.may_finish(2));
  EXPECT_EQ(sink_.budget.in_flight(), 5 + 5 + 6);
}

TEST_F(SampleCreditTest, TheOldestSampleCanHaveAllOfTheBudget) {
  for (const Key key : {Key{0, 0}, Key{0, 1}, Key{1, 0}}) start(key);
  credit_.set_need({0, 0}, 17);
  credit_.settle(sink_);
  EXPECT_TRUE(credit_.holds({0, 0}));
  EXPECT_FALSE(credit_.holds({0, 1}));
  EXPECT_FALSE(credit_.blocked());
}

TEST_F(SampleCreditTest, NothingCanStepWhileOthersHaveTheBudget) {
  start({0, 0});
  ASSERT_TRUE(sink_.budget.try_acquire(12));  // after the rollout
  credit_.set_need({0, 0}, 7);
  EXPECT_THAT(credit_.settle(sink_).preempted, ElementsAre(Key{0, 0}));
  EXPECT_TRUE(credit_.blocked());
  sink_.budget.release(12);
  EXPECT_THAT(credit_.settle(sink_).restarted, ElementsAre(Key{0, 0}));
  EXPECT_FALSE(credit_.blocked());
}

// Where whoever gets them takes them in order by himself.
TEST_F(SampleCreditTest, GroupsAreHandedOnInAnyOrderWhereTheyMay) {
  SampleCredit any(2, GroupOrder::kAny);
  for (const int64_t group : {0, 1}) {
    ASSERT_TRUE(sink_.budget.try_acquire(any.least(4, 20)));
    any.start({group, 0}, 4, 20);
  }
  any.end({1, 0}, 5, sink_);
  EXPECT_FALSE(any.may_finish(0));
  EXPECT_TRUE(any.may_finish(1));
  EXPECT_FALSE(any.may_finish(2)) << "nobody has started it";
  any.forget(1);
  any.end({0, 0}, 5, sink_);
  EXPECT_TRUE(any.may_finish(0));
}

TEST(GroupOrder, IsAnyOnARankThatOnlySamples) {
  EXPECT_EQ(order_of_groups({.rank = 1, .size = 3, .slots = 2, .owning = 2}), GroupOrder::kOldestFirst);
  EXPECT_EQ(order_of_groups({.rank = 2, .size = 3, .slots = 2, .owning = 2}), GroupOrder::kAny);
}

TEST_F(SampleCreditTest, ASampleThatDoesNotTravelKeepsNothing) {
  start({0, 0});
  credit_.end({0, 0}, 0, sink_);
  EXPECT_EQ(sink_.budget.in_flight(), 0);
  EXPECT_TRUE(credit_.may_finish(0));
}

}  // namespace
}  // namespace sluice::engine::sample_credit_test
