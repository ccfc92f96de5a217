#include "engine/ranks/parcel_pass_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/engine/ranks/parcels_in_one_process.h"

namespace sluice::engine::parcel_pass_groups_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Ranks 3, 1 and 2 compute together, of which rank 3 leads; rank 0 has nothing to do with it.
class PassGroupsTest : public ::testing::Test {
 protected:
  static constexpr int kPlaces = 3;

  PassGroupsTest() {
    for (const int rank : ranks_) groups_.push_back(std::make_unique<ParcelPassGroups>(parcels_.rank(rank), ranks_));
  }
  ~PassGroupsTest() override {
    parcels_.close();
    EXPECT_THAT(parcels_.failures(), IsEmpty());
  }

  PassGroup& at(int place) { return groups_[static_cast<size_t>(place)]->of("actor"); }

  static ColumnData column(int64_t number, size_t count = 4) {
    ColumnData column(DType::kInt64, count);
    std::ranges::fill(column.entries<int64_t>(), number);
    return column;
  }

  const std::vector<int> ranks_{3, 1, 2};
  testing::ParcelsInOneProcess parcels_{4, 7, 50};
  std::vector<std::unique_ptr<ParcelPassGroups>> groups_;
};

TEST_F(PassGroupsTest, APlaceIsThatOfItsRank) {
  for (int place = 0; place < kPlaces; ++place) {
    EXPECT_EQ(at(place).place(), place);
    EXPECT_EQ(at(place).size(), kPlaces);
  }
}

TEST_F(PassGroupsTest, MessagesComeInTheOrderInWhichTheyWereSent) {
  const std::jthread leads([&] {
    for (int i = 0; i < 40; ++i) at(0).send(2, std::to_string(i), {column(i)});
  });
  for (int i = 0; i < 40; ++i) {
    const PassGroup::Message message = at(2).receive(0, 32);
    EXPECT_EQ(message.text, std::to_string(i));
    ASSERT_EQ(message.columns.size(), 1u);
    EXPECT_EQ(message.columns[0].entries<int64_t>()[3], i);
  }
}

TEST_F(PassGroupsTest, EachPlaceGetsWhatEveryOtherHasForIt) {
  std::vector<std::jthread> places;
  for (int place = 0; place < kPlaces; ++place) {
    places.emplace_back([&, place] {
      for (int64_t round = 0; round < 20; ++round) {
        std::vector<PassGroup::Columns> to(kPlaces);
        for (int64_t other = 0; other < kPlaces; ++other)
          to[static_cast<size_t>(other)] = {column(100 * round + 10 * place + other)};
        const auto come = at(place).exchange(std::move(to), std::vector<int64_t>(kPlaces, 32));
        for (int64_t other = 0; other < kPlaces; ++other) {
          if (other == place) continue;
          ASSERT_EQ(come[static_cast<size_t>(other)].size(), 1u);
          EXPECT_EQ(come[static_cast<size_t>(other)][0].entries<int64_t>()[0], 100 * round + 10 * other + place);
        }
      }
    });
  }
}

TEST_F(PassGroupsTest, OnlyThoseWhoGiveEachOtherSomethingWait) {
  const auto exchange_with = [&](int place, int other, int64_t given, int64_t asked) {
    std::vector<PassGroup::Columns> to(kPlaces);
    if (given > 0) to[static_cast<size_t>(other)] = {column(given)};
    std::vector<int64_t> most(kPlaces, 0);
    most[static_cast<size_t>(other)] = asked;
    return at(place).exchange(std::move(to), most);
  };
  const std::jthread gives(
      [&] { EXPECT_TRUE(exchange_with(2, 0, 7, 0)[0].empty()); });  // the place between them has no part in it
  EXPECT_EQ(exchange_with(0, 2, 0, 32)[2].at(0).entries<int64_t>()[0], 7);
}

TEST_F(PassGroupsTest, GroupsOfSeveralNamesDoNotMix) {
  at(0).send(1, "a pass", {});
  groups_[0]->of("actor/saved").send(1, "a snapshot", {});
  EXPECT_EQ(groups_[1]->of("actor/saved").receive(0, 0).text, "a snapshot");
  EXPECT_EQ(at(1).receive(0, 0).text, "a pass");
}

TEST_F(PassGroupsTest, WhoWaitsLearnsThatTheRunIsOver) {
  parcels_.rank(1).expect_early_ends();  // what is waited for is left
  const std::jthread abandons([&] { groups_[1]->abandon(); });
  EXPECT_THAT([&] { at(1).receive(0, 0); }, ThrowsMessage<UserError>(HasSubstr("model actor")));
  EXPECT_THROW(groups_[1]->of("critic").receive(0, 0), UserError);
}

}  // namespace
}  // namespace sluice::engine::parcel_pass_groups_test
