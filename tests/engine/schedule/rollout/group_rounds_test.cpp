#include "engine/schedule/rollout/group_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/numbers/random.h"

namespace sluice::engine::group_rounds_test {
namespace {

using ::testing::ElementsAre;

// One rank that draws, and judges what it has of a round at once: of a slot's groups those pass whose index says so.
class Rank {
 public:
  Rank(int64_t quota, const NodeNeeds* filter, World world)
      : world_(world), tally_(world.slots, [] {}), rounds_(tally_, quota, filter, world) {
    rounds_.begin_iteration();
  }

  // The slots of the round's groups.
  std::vector<int> draw_round() {
    std::vector<int> slots;
    for (; rounds_.wants_group(); rounds_.draw()) {
      slots.push_back(rounds_.slot());
      if (rounds_.is_mine()) mine_.push_back(rounds_.drawn());
    }
    for (size_t i = 0; i < slots.size(); ++i) rounds_.finish();
    EXPECT_TRUE(rounds_.complete());
    rounds_.flush();
    return slots;
  }

  void judge(const std::vector<int>& slots, const std::vector<int64_t>& kept_of_round) {
    for (int slot = world_.mine().first; slot < world_.mine().last; ++slot)
      tally_.judge(slot, std::ranges::count(slots, slot), kept_of_round[static_cast<size_t>(slot)]);
    EXPECT_TRUE(rounds_.wants_verdicts());
    rounds_.ask_for_verdicts();
    EXPECT_FALSE(rounds_.wants_verdicts());
  }

  FilterTally& tally() { return tally_; }
  GroupRounds& rounds() { return rounds_; }
  const std::vector<int64_t>& mine() const { return mine_; }

 private:
  const World world_;
  FilterTally tally_;
  GroupRounds rounds_;
  std::vector<int64_t> mine_;  // indices
};

std::vector<std::unique_ptr<Rank>> ranks(int size, int slots, int64_t quota, const NodeNeeds* filter) {
  std::vector<std::unique_ptr<Rank>> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(std::make_unique<Rank>(quota, filter, World{rank, size, slots}));
  return all;
}

TEST(GroupRounds, SlotsHaveTheGroupsBehindEachOther) {
  Rank rank(7, nullptr, {.slots = 4});
  EXPECT_THAT(rank.draw_round(), ElementsAre(0, 1, 1, 2, 2, 3, 3));
  EXPECT_FALSE(rank.rounds().undecided());
}

TEST(GroupRounds, WithFewerGroupsThanSlotsSomeHaveNone) {
  Rank rank(2, nullptr, {.slots = 6});
  EXPECT_THAT(rank.draw_round(), ElementsAre(2, 5));
}

TEST(GroupRounds, EveryGroupHasOneRank) {
  for (const int size : {1, 2, 3, 6}) {
    std::vector<int64_t> drawn;
    for (const auto& rank : ranks(size, 6, 11, nullptr)) {
      rank->draw_round();
      drawn.insert(drawn.end(), rank->mine().begin(), rank->mine().end());
    }
    std::vector<int64_t> all(11);
    std::iota(all.begin(), all.end(), int64_t{0});
    EXPECT_EQ(drawn, all) << size;  // and a rank's come before those of the next
  }
}

TEST(GroupRounds, ASlotThatMissesGroupsDrawsThemAgain) {
  NodeNeeds filter;
  filter.most_draws = 3;
  filter.oversample = 1.5;
  Rank rank(8, &filter, {.slots = 4});
  const std::vector<int> first = rank.draw_round();
  EXPECT_THAT(first, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3));
  EXPECT_TRUE(rank.rounds().undecided());
  rank.judge(first, {2, 0, 1, 2});
  EXPECT_TRUE(rank.rounds().undecided());
  rank.tally().learn({2, 0, 1, 2});
  ASSERT_TRUE(rank.rounds().wants_round());
  rank.rounds().begin_next_round();
  EXPECT_THAT(rank.draw_round(), ElementsAre(1, 1, 1, 2, 2));
  rank.judge({1, 1, 1, 2, 2}, {0, 0, 1, 0});
  rank.tally().learn({2, 0, 2, 2});
  EXPECT_FALSE(rank.rounds().wants_round());  // slot 1 has drawn three times its two groups
  EXPECT_FALSE(rank.rounds().undecided());
}

// Whatever passes: all draw the same groups in the same rounds, and nobody more than it may.
TEST(GroupRounds, AllRanksDrawAlikeWhateverPasses) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed, 5);
    const int slots = 6, size = std::vector{1, 2, 3, 6}[random.below(4)];
    const auto quota = static_cast<int64_t>(1 + random.below(15));
    NodeNeeds filter;
    filter.most_draws = static_cast<int64_t>(2 + random.below(3));
    filter.oversample = 1 + 0.5 * static_cast<double>(random.below(3));
    const auto all = ranks(size, slots, quota, &filter);
    std::vector<int64_t> kept(slots);
    bool goes_on = true;
    while (goes_on) {
      const std::vector<int> drawn = all[0]->draw_round();
      for (int rank = 1; rank < size; ++rank) ASSERT_EQ(all[static_cast<size_t>(rank)]->draw_round(), drawn) << seed;
      ASSERT_TRUE(std::ranges::is_sorted(drawn));
      std::vector<int64_t> passed(slots);
      for (int slot = 0; slot < slots; ++slot) {
        const int64_t room = World{.slots = slots}.share_of_slot(quota, slot) - kept[static_cast<size_t>(slot)];
        const int64_t most = std::min<int64_t>(room, std::ranges::count(drawn, slot));
        passed[static_cast<size_t>(slot)] = static_cast<int64_t>(random.below(static_cast<uint64_t>(most + 1)));
        kept[static_cast<size_t>(slot)] += passed[static_cast<size_t>(slot)];
      }
      for (const auto& rank : all) rank->judge(drawn, passed);
      for (const auto& rank : all) rank->tally().learn(kept);
      goes_on = all[0]->rounds().wants_round();
      for (const auto& rank : all) {
        ASSERT_EQ(rank->rounds().wants_round(), goes_on) << seed;
        ASSERT_EQ(rank->rounds().undecided(), goes_on) << seed;
        if (goes_on) rank->rounds().begin_next_round();
      }
    }
    EXPECT_LE(all[0]->rounds().drawn(), filter.most_draws * quota) << seed;
  }
}

}  // namespace
}  // namespace sluice::engine::group_rounds_test
