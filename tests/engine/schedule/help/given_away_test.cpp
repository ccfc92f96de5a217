#include "engine/schedule/help/given_away.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <variant>

#include "engine/schedule/help/take_over.h"
#include "tests/engine/schedule/helping_ranks.h"

namespace sluice::engine::given_away_test {
namespace {

constexpr int kPath = 0;
constexpr Round kRound{.iteration = 3, .number = 0};

// Rank 0 gives groups of its own to the others.
class GivenAwayTest : public testing::HelpingRanks {
 protected:
  void give(size_t to, int64_t group) {
    asker(to).ask(kPath, 0, kRound);
    const auto question = await([&] { return owner(0).take_question(kPath, kRound); });
    take_over_.expect(group);
    given_.give(*question, prompt(kRound.iteration, group));
    making_.at(to) = std::move(*answer_for(to)->group);
  }

  // By the rank that was given it last.
  void make(size_t maker, int64_t tokens) {
    Group made = std::move(making_.at(maker));
    made.layout = {};
    made.layout.add_sample(tokens, 1);
    made.layout.end_group();
    ASSERT_TRUE(others_.try_acquire(tokens));
    asker(maker).give_back(kPath, 0, made, Credit(others_, tokens));
  }

  // The next one is taken over, as soon as rank 0 knows that it is made.
  void take_over() {
    await([&] {
      given_.learn();
      return take_over_.fits();
    });
    TakeOver::Taken taken = std::move(*take_over_.take());
    given_.fetch(kRound.iteration, std::get<GroupOwner::Made>(taken.group), std::move(taken.credit));
  }

  void lose(int lost) {
    lose_rank(lost);
    EXPECT_TRUE(given_.learn());
  }

  TokenBudget trained_{20, [] {}}, others_{100, [] {}};
  std::array<Group, 3> making_;  // by rank
  TakeOver take_over_{trained_};
  GivenAway given_{owner(0), kPath, take_over_};
};

TEST_F(GivenAwayTest, WhatIsMadeComesWithItsCredit) {
  give(1, 5);
  make(1, 7);
  take_over();
  const auto fetched = await([&] { return given_.take_fetched(); });
  EXPECT_EQ(fetched->group.index, 5);
  EXPECT_EQ(fetched->group.layout.tokens(), 7u);
  EXPECT_EQ(trained_.in_flight(), 7);
  EXPECT_FALSE(given_.has_again());
}

TEST_F(GivenAwayTest, PromptsOfALostRankAreGivenAgainTheOldestFirst) {
  give(1, 5);
  give(2, 6);
  give(1, 7);
  lose(1);
  EXPECT_EQ(given_.take_again()->index, 5);
  EXPECT_EQ(given_.take_again()->index, 7);
  EXPECT_FALSE(given_.take_again()) << "6 is made by a rank that is there";
}

TEST_F(GivenAwayTest, TheSamePromptIsGivenAgain) {
  give(1, 5);
  lose(1);
  EXPECT_TRUE(given_.is_next());
  EXPECT_EQ(given_.take_again()->read(testing::kNumber)[0], 105);
  EXPECT_FALSE(given_.has_again());
}

// It is made, and this rank has no room for it yet: so nobody has it.
TEST_F(GivenAwayTest, WhatWasMadeByALostRankAndNotFetchedIsGivenAgain) {
  give(1, 5);
  make(1, 7);
  await([&] {
    given_.learn();
    return take_over_.fits();
  });
  lose(1);
  EXPECT_FALSE(take_over_.fits());
  EXPECT_TRUE(given_.is_next());
}

TEST_F(GivenAwayTest, WhatIsOnItsWayFromALostRankGivesItsCreditBack) {
  give(1, 5);
  make(1, 7);
  take_over();
  EXPECT_EQ(trained_.in_flight(), 7);
  lose_rank(1);
  given_.learn();
  if (given_.has_again()) {
    EXPECT_EQ(trained_.in_flight(), 0);
    EXPECT_EQ(given_.take_again()->index, 5);
  } else {
    EXPECT_EQ(given_.take_fetched()->group.index, 5) << "it was here before";
  }
}

TEST_F(GivenAwayTest, WhatCameBeforeItsMakerWasLostIsKept) {
  give(1, 5);
  make(1, 7);
  take_over();
  await([&] { return rank(0).has_news(kPath, kRound); });
  lose_rank(1);
  EXPECT_FALSE(given_.learn());
  EXPECT_EQ(given_.take_fetched()->group.index, 5);
}

TEST_F(GivenAwayTest, WhatIsDeclinedIsNotAwaited) {
  give(1, 5);
  give(2, 6);
  asker(1).decline(kPath, 0, kRound.iteration, 5, {});
  const auto declined = await([&] { return given_.take_declined(); });
  EXPECT_EQ(declined->group, 5);
  EXPECT_EQ(take_over_.next(), 6);
}

}  // namespace
}  // namespace sluice::engine::given_away_test
