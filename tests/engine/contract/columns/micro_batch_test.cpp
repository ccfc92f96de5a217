#include "engine/contract/columns/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::engine::micro_batch_test {
namespace {

constexpr Column<float> kValues{"values", Extent::kAction};
constexpr Column<float> kReturns{"returns", Extent::kAction};

Layout two_samples() {
  Layout layout;
  layout.add_sample(5, 2);
  layout.add_sample(4, 1);
  layout.end_group();
  return layout;
}

struct World {
  ByteMeter meter;
  ColumnSpecs slots{kValues.spec(), kReturns.spec()};
  TokenBudget budget{100, [] {}};
  Readers readers{.columns = {1, 0}, .tokens = 1};
  std::shared_ptr<BatchState> state;
  std::vector<int> first{0}, second{1}, none;

  explicit World(Readers readers_ = {.columns = {1, 0}, .tokens = 1}) : readers(std::move(readers_)) {
    budget.try_acquire(9);
    state = std::make_shared<BatchState>(0, 0, two_samples(), std::vector<int64_t>{4}, std::vector{Credit(budget, 9)}, readers,
                                         meter);
  }
};

TEST(Layout, ActionsAreTheLastTokensOfEachSample) {
  const Layout layout = two_samples();
  EXPECT_THAT(layout.action_tokens, ::testing::ElementsAre(3, 4, 8));
  EXPECT_EQ(layout.count(Extent::kToken), 9u);
  EXPECT_EQ(layout.count(Extent::kGroup), 1u);
  EXPECT_EQ(layout.actions_by_sample()[1].begin, 2u);
}

TEST(Layout, AppendingShiftsTokensAndSamples) {
  Layout layout = two_samples();
  layout.append(two_samples());
  EXPECT_THAT(layout.group_offsets, ::testing::ElementsAre(0, 2, 4));
  EXPECT_THAT(layout.token_offsets, ::testing::ElementsAre(0, 5, 9, 14, 18));
  EXPECT_THAT(layout.action_tokens, ::testing::ElementsAre(3, 4, 8, 12, 13, 17));
}

TEST(Layout, TheFirstTokenOfASampleIsNoAction) {
  Layout layout;
  EXPECT_THROW(layout.add_sample(2, 2), InternalError);
}

TEST(MicroBatch, GivesOnlyWhatTheContractNames) {
  World w;
  w.state->store(0, ColumnData(DType::kFloat32, 3));
  MicroBatch batch(*w.state, w.slots, w.first, w.none);
  EXPECT_EQ(batch.read(kValues).size(), 3u);
  EXPECT_THROW(batch.read(kReturns), UserError);
  EXPECT_THROW(batch.write(kReturns), UserError);
}

TEST(MicroBatch, SaysWhatTheContractHasUnderTheName) {
  World w;
  MicroBatch batch(*w.state, w.slots, w.first, w.second);
  const auto said = [](const auto& call) {
    try {
      call();
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string();
  };
  ColumnSpec other = kReturns.spec();
  other.dtype = DType::kInt64;
  EXPECT_EQ(said([&] { batch.write(other); }),
            "it writes column 'returns' as int64 of each action, and its contract says float32 of each action");
  constexpr Column<float> kOfGroups{"values", Extent::kGroup};
  EXPECT_EQ(said([&] { batch.read(kOfGroups); }),
            "it reads column 'values' as float32 of each group, and its contract says float32 of each action");
}

TEST(MicroBatch, RefusesToWriteAColumnTwice) {
  World w;
  MicroBatch batch(*w.state, w.slots, w.none, w.second);
  EXPECT_EQ(batch.write(kReturns).size(), 3u);
  EXPECT_THROW(batch.write(kReturns), UserError);
}

TEST(BatchState, FreesAColumnAfterItsLastReader) {
  World w({.columns = {2, 0}, .tokens = 1});
  w.state->store(0, ColumnData(DType::kFloat32, 3));
  EXPECT_EQ(w.meter.live(), 12);
  w.state->release_one_reader(0);
  EXPECT_EQ(w.meter.live(), 12);
  w.state->release_one_reader(0);
  EXPECT_EQ(w.meter.live(), 0);
  EXPECT_EQ(w.meter.take_peak(), 12);
}

TEST(BatchState, KeepsNothingThatNobodyReadsAndLeavesNothingBehind) {
  World w;
  w.state->store(1, ColumnData(DType::kFloat32, 3));
  EXPECT_EQ(w.meter.live(), 0);
  w.state->store(0, ColumnData(DType::kFloat32, 3));
  w.state.reset();
  EXPECT_EQ(w.meter.live(), 0);
}

TEST(BatchState, ReturnsTheCreditAfterTheLastReaderOfAll) {
  World w({.columns = {2, 0}, .tokens = 2});
  w.state->release_one_token_reader();
  EXPECT_EQ(w.budget.in_flight(), 9);
  w.state->release_one_token_reader();
  EXPECT_EQ(w.budget.in_flight(), 0);
}

// Two groups of two samples; the first of the groups is dropped.
TEST(BatchState, HandsOnWhatAFilterKeepsWithItsCredit) {
  ByteMeter meter;
  TokenBudget budget(100, [] {});
  const ColumnSpecs slots{kValues.spec(), kReturns.spec()};
  const Readers before{.columns = {2, 0}, .tokens = 2}, behind{.columns = {1, 0}, .tokens = 1};
  Layout layout = two_samples();
  layout.append(two_samples());
  budget.try_acquire(18);
  auto whole = std::make_shared<BatchState>(3, 1, layout, std::vector<int64_t>{6, 7},
                                            std::vector{Credit(budget, 9), Credit(budget, 9)}, before, meter);
  ColumnData values(DType::kFloat32, 6);
  for (size_t i = 0; i < 6; ++i) values.entries<float>()[i] = static_cast<float>(i);
  whole->store(0, values);

  const std::vector<uint8_t> keep{0, 1};
  const auto thin = whole->thinned(keep, slots, {0}, behind);
  EXPECT_THAT(thin->group_indices, ::testing::ElementsAre(7));
  EXPECT_THAT(thin->layout.action_tokens, ::testing::ElementsAre(3, 4, 8));
  EXPECT_THAT(thin->slots[0].data.entries<float>(), ::testing::ElementsAre(3, 4, 5));

  thin->release_one_token_reader();
  EXPECT_EQ(budget.in_flight(), 18) << "the micro-batch in front of the filter still holds both groups";
  whole->release_one_token_reader();
  whole->release_one_token_reader();
  EXPECT_EQ(budget.in_flight(), 0);
}

// The dropped group does not wait for those that go on.
TEST(BatchState, ReturnsTheCreditOfDroppedGroupsFirst) {
  ByteMeter meter;
  TokenBudget budget(100, [] {});
  const Readers before{.columns = {1, 0}, .tokens = 1}, behind{.columns = {1, 0}, .tokens = 1};
  Layout layout = two_samples();
  layout.append(two_samples());
  budget.try_acquire(18);
  auto whole = std::make_shared<BatchState>(0, 0, layout, std::vector<int64_t>{0, 1},
                                            std::vector{Credit(budget, 9), Credit(budget, 9)}, before, meter);
  const auto thin = whole->thinned(std::vector<uint8_t>{1, 0}, {kValues.spec(), kReturns.spec()}, {}, behind);
  whole->release_one_token_reader();
  EXPECT_EQ(budget.in_flight(), 9);
  thin->release_one_token_reader();
  EXPECT_EQ(budget.in_flight(), 0);
}

}  // namespace
}  // namespace sluice::engine::micro_batch_test
