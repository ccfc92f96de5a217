#include "engine/ranks/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/ranks/mail_in_one_process.h"

namespace sluice::engine::roll_call_test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Rank 0, and three that only sample.
class RollCallTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 4;

  RollCallTest() {
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(std::make_shared<RollCall>(mail_.rank(rank), std::vector<int>{1, 2, 3}, 0));
      ranks_.back()->listen([this] { interrupts_ += 1; });
    }
  }
  ~RollCallTest() override {
    for (const auto& rank : ranks_) rank->forget();
    mail_.close();
    EXPECT_TRUE(mail_.failures().empty());
  }

  RollCall& rank_0() { return *ranks_.front(); }

  void tell(int rank, int64_t iteration) {
    Part part{.name = "samples", .kind = Metric::kSum, .numbers = {}, .recorded = true};
    part.numbers.add(10.0 * rank);
    ranks_[static_cast<size_t>(rank)]->tell(iteration, {part}, {{5, {part}}}, "rank " + std::to_string(rank));
  }

  void ask(int64_t iteration, bool is_last = true) {
    rank_0().when_told(iteration, is_last, [this, iteration](const RollCall::Told& told) {
      const std::lock_guard lock(mutex_);
      told_[iteration].push_back(told);
      changed_.notify_all();
    });
  }

  std::optional<RollCall::Told> told_now(int64_t iteration) {
    const std::lock_guard lock(mutex_);
    return told_[iteration].empty() ? std::nullopt : std::optional(told_[iteration].front());
  }

  RollCall::Told await(int64_t iteration) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !told_[iteration].empty(); });
    EXPECT_TRUE(came) << "it never came";
    return came ? told_[iteration].front() : RollCall::Told{};
  }

  testing::MailInOneProcess mail_{kRanks, 1, 50};
  std::atomic<int> interrupts_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::vector<RollCall::Told>> told_;  // by iteration
  std::vector<std::shared_ptr<RollCall>> ranks_;
};

TEST_F(RollCallTest, AddsUpWhatAllHaveTold) {
  ask(0);
  for (const int rank : {3, 1, 2}) tell(rank, 0);
  const RollCall::Told told = await(0);
  EXPECT_THAT(told.texts, UnorderedElementsAre("rank 1", "rank 2", "rank 3"));
  ASSERT_EQ(told.own.size(), 1u);
  EXPECT_EQ(told.own.front().numbers.mean() * told.own.front().numbers.count(), 60);
  EXPECT_EQ(told.of_rollouts.at(5).front().name, "samples");
}

TEST_F(RollCallTest, NobodyIsToldBeforeAllHave) {
  ask(0);
  ask(1);
  for (const int rank : {1, 2}) tell(rank, 0);
  for (const int rank : {1, 2, 3}) tell(rank, 1);
  await(1);
  EXPECT_FALSE(told_now(0)) << "rank 3 has told of another iteration only";
  tell(3, 0);
  await(0);
}

TEST_F(RollCallTest, IsTheSameForWhoAsksLater) {
  ask(0, /*is_last=*/false);
  for (const int rank : {1, 2, 3}) tell(rank, 0);
  await(0);
  ask(0);
  EXPECT_EQ(await(0).texts.size(), 3u);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(told_[0].size(), 2u) << "at once";
}

TEST_F(RollCallTest, GoesOnWithoutThoseThatAreLost) {
  ask(0);
  for (const int rank : {1, 2}) tell(rank, 0);
  rank_0().lose(3);
  EXPECT_EQ(await(0).texts.size(), 2u);
}

// Whatever it told before it was lost does not count any more.
TEST_F(RollCallTest, HearsNothingOfOnesThatAreLost) {
  rank_0().lose(3);
  tell(3, 0);
  ask(0);
  for (const int rank : {1, 2}) tell(rank, 0);
  EXPECT_THAT(await(0).texts, UnorderedElementsAre("rank 1", "rank 2"));
}

TEST_F(RollCallTest, WaitsForOneThatIsBackFromItsFirstIterationOn) {
  rank_0().lose(3);
  rank_0().join(3, 1);
  ask(0);
  ask(1);
  for (const int64_t iteration : {0, 1}) {
    for (const int rank : {1, 2}) tell(rank, iteration);
  }
  EXPECT_EQ(await(0).texts.size(), 2u);
  EXPECT_FALSE(told_now(1));
  tell(3, 1);
  EXPECT_EQ(await(1).texts.size(), 3u);
}

TEST_F(RollCallTest, GivesNothingOfIterationsThatAreAbandoned) {
  ask(0);
  ask(1);
  rank_0().abandon_behind(0);
  EXPECT_TRUE(await(1).texts.empty());
  EXPECT_FALSE(told_now(0));
  ask(2);
  EXPECT_TRUE(await(2).own.empty()) << "nor of what is asked for later";
  for (const int rank : {1, 2, 3}) tell(rank, 0);
  EXPECT_EQ(await(0).texts.size(), 3u);
}

TEST_F(RollCallTest, TellsRank0OfAnInterrupt) {
  ranks_[2]->tell_of_interrupt();
  ask(0);
  for (const int rank : {1, 2, 3}) tell(rank, 0);  // of one sender in order
  await(0);
  EXPECT_EQ(interrupts_, 1);
}

}  // namespace
}  // namespace sluice::engine::roll_call_test
