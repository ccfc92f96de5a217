#include "engine/schedule/help/mutual_help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "engine/schedule/help/askers.h"
#include "engine/schedule/help/helping.h"
#include "tests/engine/schedule/helping_ranks.h"

namespace sluice::engine::mutual_help_test {
namespace {

using testing::kNumber;

class MutualHelpTest : public testing::HelpingRanks {};

TEST_F(MutualHelpTest, AGroupIsMadeByWhoAsksAndComesBack) {
  const Round round{.iteration = 3, .number = 0};
  asker(1).ask(0, 0, round);
  const auto question = await([&] { return owner(0).take_question(0, round); });
  EXPECT_EQ(question->rank, 1);
  EXPECT_EQ(question->round, round);
  owner(0).give(0, *question, prompt(3, 5));

  auto answer = answer_for(1);
  EXPECT_EQ(answer->owner, 0);
  ASSERT_TRUE(answer->group);
  EXPECT_EQ(answer->group->index, 5);
  EXPECT_EQ(answer->group->read(kNumber)[0], 105);

  TokenBudget budget(20, [] {});
  ASSERT_TRUE(budget.try_acquire(7));
  Group made = std::move(*answer->group);
  made.layout = {};
  made.layout.add_sample(7, 3);
  made.layout.end_group();
  asker(1).give_back(0, 0, made, Credit(budget, 7));
  const auto told = await([&] { return owner(0).take_made(0); });
  EXPECT_EQ(told->group, 5);
  EXPECT_EQ(told->rank, 1);
  EXPECT_EQ(told->tokens, 7);
  EXPECT_EQ(budget.in_flight(), 7) << "as long as the owner has no room for it";
  owner(0).fetch(0, 3, *told);
  const auto fetched = await([&] { return owner(0).take_fetched(0); });
  EXPECT_EQ(fetched->layout.tokens(), 7u);
  EXPECT_EQ(fetched->read(kNumber)[0], 105);
  await([&] { return budget.in_flight() == 0; });
}

TEST_F(MutualHelpTest, WhoAsksForARoundThatHasNotBegunWaits) {
  asker(1).ask(0, 0, {.iteration = 1, .number = 1});
  asker(2).ask(0, 0, {.iteration = 1, .number = 0});
  const auto first = await([&] { return owner(0).take_question(0, {.iteration = 1, .number = 0}); });
  EXPECT_EQ(first->rank, 2);
  EXPECT_FALSE(owner(0).take_question(0, {.iteration = 1, .number = 0}));
  const auto second = await([&] { return owner(0).take_question(0, {.iteration = 2, .number = 0}); });
  EXPECT_EQ(second->rank, 1);
  owner(0).refuse(0, *second);
  EXPECT_FALSE(answer_for(1)->group);
}

// Whether the question came before that or comes after it, and also where this rank is over.
TEST_F(MutualHelpTest, WhereNoneIsLeftWhoAsksIsRefusedAtOnce) {
  asker(1).ask(0, 0, {.iteration = 1, .number = 0});
  await([&] { return rank(0).has_news(0, {.iteration = 1, .number = 0}); });
  owner(0).say_none_left(0, {.iteration = 1, .number = 0});
  EXPECT_FALSE(answer_for(1)->group);
  asker(1).ask(0, 0, {.iteration = 0, .number = 3});
  EXPECT_FALSE(answer_for(1)->group);
  owner(0).leave(0);
  asker(1).ask(0, 0, {.iteration = 9, .number = 0});
  EXPECT_FALSE(answer_for(1)->group);
}

TEST_F(MutualHelpTest, CreditOfWhatIsNeverFetchedIsFreeWhenTheRunIsOver) {
  TokenBudget budget(20, [] {});
  ASSERT_TRUE(budget.try_acquire(7));
  for (int index = 0; index < 3; ++index) rank(static_cast<size_t>(index)).expect_early_ends();
  Group made = prompt(0, 1);
  asker(1).give_back(0, 0, made, Credit(budget, 7));
  await([&] { return owner(0).take_made(0); });
  rank(1).forget();
  EXPECT_EQ(budget.in_flight(), 0);
}

TEST_F(MutualHelpTest, CreditOfWhatIsNotFetchedYetCanBeGivenUp) {
  TokenBudget budget(20, [] {});
  for (const int64_t index : {1, 2}) {
    ASSERT_TRUE(budget.try_acquire(7));
    asker(1).give_back(0, 0, prompt(0, index), Credit(budget, 7));
  }
  EXPECT_TRUE(asker(1).has_credit(0));
  EXPECT_FALSE(asker(1).has_given_up_credit(0));
  asker(1).give_up_credit(0);
  EXPECT_EQ(budget.in_flight(), 0);
  EXPECT_FALSE(asker(1).has_credit(0));
  for (int group = 0; group < 2; ++group) {
    EXPECT_TRUE(asker(1).has_given_up_credit(0)) << "as long as one of them is there";
    owner(0).fetch(0, 0, *await([&] { return owner(0).take_made(0); }));
    EXPECT_EQ(await([&] { return owner(0).take_fetched(0); })->read(kNumber)[0], 101 + group);
  }
  await([&] { return !asker(1).has_given_up_credit(0); });
}

// One after the other, each until it has none left; in the next round again.
TEST_F(MutualHelpTest, ARankAsksAllOthersInEachRound) {
  TokenBudget budget(20, [] {});
  Helping helping(asker(1), 0, {.rank = 1, .size = 3, .slots = 3});
  EXPECT_TRUE(helping.may_ask());
  for (const int64_t number : {0, 1}) {
    const Round round{.iteration = 4, .number = number};
    helping.begin_round(round);
    for (const size_t other : {2, 0}) {
      for (const bool has_one : {true, false}) {
        ASSERT_TRUE(helping.may_ask());
        ASSERT_TRUE(budget.try_acquire(5));
        helping.ask(Credit(budget, 5));
        EXPECT_FALSE(helping.may_ask());
        EXPECT_TRUE(helping.is_busy());
        const auto question = await([&] { return owner(other).take_question(0, round); });
        const int64_t index = 10 * number + static_cast<int64_t>(other);
        if (has_one)
          owner(other).give(0, *question, prompt(4, index));
        else
          owner(other).refuse(0, *question);
        await([&] { return rank(1).has_news(0, round); });
        auto got = helping.take_prompt();
        ASSERT_EQ(got.has_value(), has_one);
        EXPECT_EQ(budget.in_flight(), has_one ? 5 : 0);
        if (!got) continue;
        EXPECT_EQ(got->group.index, index);
        EXPECT_TRUE(helping.is_busy());
        helping.give_back(std::move(got->group), std::move(got->credit));
        EXPECT_FALSE(helping.is_busy());
        const auto made = await([&] { return owner(other).take_made(0); });
        owner(other).fetch(0, 4, *made);
        await([&] { return owner(other).take_fetched(0); });
        await([&] { return budget.in_flight() == 0; });
      }
    }
    EXPECT_FALSE(helping.may_ask());
  }
  EXPECT_EQ(helping.take_count(), 4);
  EXPECT_EQ(helping.take_count(), 0);
}

// Ranks that only sample ask so that no rank with slots is forgotten, and each where any of them may be lost.
TEST(Askers, OfRanksThatOnlySampleForgetNoRankWithSlots) {
  for (const int owners : {1, 2, 9, 20, 200}) {
    for (const int samplers : {1, 2, 3, 30}) {
      World world{.size = owners + samplers, .slots = owners, .owning = owners};
      std::set<int> asked_by_some;
      for (world.rank = owners; world.rank < world.size; ++world.rank) {
        const std::vector<int> some = owners_to_ask(world, Asked::kSome), all = owners_to_ask(world, Asked::kAll);
        asked_by_some.insert(some.begin(), some.end());
        EXPECT_EQ(std::set<int>(some.begin(), some.end()).size(), some.size());
        EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), static_cast<size_t>(owners));
      }
      EXPECT_EQ(asked_by_some.size(), static_cast<size_t>(owners));
      for (world.rank = 0; world.rank < owners; ++world.rank)
        EXPECT_EQ(samplers_that_ask(world, Asked::kAll).size(), static_cast<size_t>(samplers));
    }
  }
}

TEST(Helping, AsksEightOfManyRanksAndNeverItself) {
  for (const int size : {2, 5, 9, 10, 64, 1000}) {
    for (const int self : {0, size / 2, size - 1}) {
      const std::vector<int> owners = ranks_to_ask({.rank = self, .size = size});
      EXPECT_EQ(owners.size(), static_cast<size_t>(std::min(size - 1, 8)));
      EXPECT_EQ(std::set<int>(owners.begin(), owners.end()).size(), owners.size());
      EXPECT_EQ(std::ranges::count(owners, self), 0);
    }
  }
}

}  // namespace
}  // namespace sluice::engine::mutual_help_test
