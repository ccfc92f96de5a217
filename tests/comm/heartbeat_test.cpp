#include "comm/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers/bytes.h"
#include "base/process/free_port.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::heartbeat_test {
namespace {

using testing::in_threads;

constexpr std::chrono::seconds kLong{60};  // never reached unless something hangs

// Three ranks in this process that have joined; hearts are made by the tests.
class HeartbeatTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    const int port = free_port();
    const auto said = in_threads(kRanks, [&](int rank) {
      stores_[rank] = std::make_unique<Store>(
          JoinOptions{.rank = rank, .size = kRanks, .port = port, .join_seconds = 30, .answer_seconds = 2});
    });
    ASSERT_THAT(said, ::testing::Each(""));
  }

  void TearDown() override {
    for (auto& heart : hearts_) heart.reset();
    for (int rank = kRanks; rank-- > 0;) stores_[rank].reset();
  }

  void start(int rank) {
    hearts_[rank] = std::make_unique<Heartbeat>(
        *stores_[rank],
        HeartbeatOptions{.beat_seconds = .05,
                         .dead_after_seconds = 1,
                         .first_beat_seconds = first_beat_seconds_,
                         .sign =
                             [this, rank] {
                               std::this_thread::sleep_until(stopped_until_.load() + rank * std::chrono::milliseconds(100));
                               return engine::RankSign{.doing = "in step " + std::to_string(rank), .iterations_done = rank};
                             },
                         .lost =
                             [this, rank](const RankLoss& loss) {
                               ++losses_;
                               told_[rank].set_value(loss);
                             }});
  }

  RankLoss told(int rank) {
    std::future<RankLoss> future = told_[rank].get_future();
    if (future.wait_for(kLong) == std::future_status::ready) return future.get();
    ADD_FAILURE() << "rank " << rank << " was not told";
    return {};
  }

  std::unique_ptr<Store> stores_[kRanks];
  std::unique_ptr<Heartbeat> hearts_[kRanks];
  std::promise<RankLoss> told_[kRanks];
  std::atomic<int> losses_ = 0;
  double first_beat_seconds_ = 60;
  std::atomic<Clock::time_point> stopped_until_ = Clock::time_point();  // all ranks; rank 0 goes on first
};

TEST_F(HeartbeatTest, TellsOfARankThatNeverBeats) {
  first_beat_seconds_ = .5;
  start(0);
  start(1);
  for (const int rank : {0, 1}) {
    const RankLoss loss = told(rank);
    EXPECT_EQ(loss.rank, 2);
    EXPECT_EQ(loss.how, RankLoss::How::kSilent);
    EXPECT_EQ(loss.pid, ::getpid());
    EXPECT_GE(loss.seconds, .5);
  }
}

TEST_F(HeartbeatTest, TellsOfARankThatBeatsNoLonger) {
  ByteWriter beat;
  beat.number(uint64_t{1});
  beat.number(uint8_t{0});
  beat.text("in 'train'");
  for (const int64_t number : {7, 128, 1'000'000, 0}) beat.number(number);
  beat.number(uint8_t{0});
  stores_[2]->connect()->set(beat_key(2, 0), beat.take());
  start(0);
  start(1);
  for (const int rank : {0, 1}) {
    const RankLoss loss = told(rank);
    EXPECT_EQ(loss.rank, 2);
    EXPECT_EQ(loss.doing, "in 'train'");
    EXPECT_GE(loss.seconds, 1);
  }
}

TEST_F(HeartbeatTest, TellsNobodyOfRanksThatLiveAndEnd) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  hearts_[2]->end_well();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // longer than a rank may be silent
  in_threads(2, [&](int rank) { hearts_[rank]->end_well(); });
  EXPECT_EQ(losses_, 0);
}

// As by Ctrl-Z and `fg`.
TEST_F(HeartbeatTest, TellsNobodyOfRanksThatWereStoppedTogether) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stopped_until_ = Clock::now() + std::chrono::milliseconds(1500);  // longer than a rank may be silent
  std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  in_threads(kRanks, [&](int rank) { hearts_[rank]->end_well(); });
  EXPECT_EQ(losses_, 0);
}

TEST_F(HeartbeatTest, ShowsWhatEachRankShows) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  for (int looks = 0; hearts_[0]->seen().back().last.doing.empty() && looks < 600; ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::vector<engine::RankSeen> seen = hearts_[0]->seen();
  ASSERT_EQ(seen.size(), 3u);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(seen[rank].rank, rank);
    EXPECT_EQ(seen[rank].pid, ::getpid());
    EXPECT_EQ(seen[rank].last.doing, "in step " + std::to_string(rank));
    EXPECT_EQ(seen[rank].last.iterations_done, rank);
    EXPECT_LT(seen[rank].silent_seconds, 60);
  }
  hearts_[2]->end_well();
  for (int looks = 0; hearts_[0]->seen().back().last.doing != "has ended" && looks < 600; ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(hearts_[0]->seen().back().last.doing, "has ended");
}

TEST_F(HeartbeatTest, OfRank0WaitsForTheOthers) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  std::atomic<bool> others_ended = false;
  in_threads(2, [&](int which) {
    if (which == 0) {
      hearts_[0]->end_well();
      EXPECT_TRUE(others_ended);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      hearts_[1]->end_well();
      others_ended = true;
      hearts_[2]->end_well();
    }
  });
  EXPECT_EQ(losses_, 0);
}

TEST_F(HeartbeatTest, TellsWhyARankFailed) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  hearts_[1]->fail("error: the disk is full\n  = help: make room");
  for (const int rank : {0, 2}) {
    EXPECT_EQ(text_of(told(rank)), "rank 1 (host " + stores_[0]->members()[1].host + ", pid " + std::to_string(::getpid()) +
                                       ") failed: the disk is full");
  }
  EXPECT_EQ(losses_, 2) << "who failed knows";
}

// As where something came damaged while a long step is under way.
TEST_F(HeartbeatTest, TellsWhyARankFailsBeforeItEnds) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  hearts_[1]->warn("error: the floats came damaged\n   more");
  for (const int rank : {0, 2}) EXPECT_THAT(text_of(told(rank)), ::testing::EndsWith("failed: the floats came damaged")) << rank;
  in_threads(kRanks, [&](int rank) { hearts_[rank]->fail("another reason"); });
  EXPECT_EQ(losses_, 2) << "the one that failed is not told of itself, nor anybody of what it says when it ends";
}

TEST_F(HeartbeatTest, OfRank0TellsWhyItFailedBeforeItEnds) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  std::jthread ends([&] { hearts_[0]->fail("no memory"); });
  for (const int rank : {1, 2}) {
    const RankLoss loss = told(rank);
    EXPECT_EQ(loss.rank, 0);
    EXPECT_EQ(loss.why, "no memory");
    hearts_[rank]->fail("rank 0 failed");
  }
}

TEST_F(HeartbeatTest, TellsTheFirstFailureEverywhere) {
  for (int rank = 0; rank < kRanks; ++rank) start(rank);
  in_threads(2, [&](int which) { hearts_[which + 1]->fail("failure of " + std::to_string(which + 1)); });
  const RankLoss loss = told(0);
  EXPECT_EQ(loss.why, "failure of " + std::to_string(loss.rank));
}

TEST_F(HeartbeatTest, TellsThatRank0IsGone) {
  for (const int rank : {1, 2}) start(rank);
  stores_[0].reset();
  for (const int rank : {1, 2}) {
    const RankLoss loss = told(rank);
    EXPECT_EQ(loss.rank, 0);
    EXPECT_EQ(loss.how, RankLoss::How::kClosed);
  }
}

TEST(RankLoss, IsOneSentence) {
  RankLoss loss{.rank = 3, .host = "n2", .pid = 4711, .seconds = 10.2, .doing = "in 'generate', iteration 7"};
  EXPECT_EQ(text_of(loss), "rank 3 (host n2, pid 4711) gave no sign for 10 s; it was last in 'generate', iteration 7");
  loss.how = RankLoss::How::kClosed;
  loss.doing = "";
  EXPECT_EQ(text_of(loss), "rank 3 (host n2, pid 4711) has ended without a word");
}

TEST(RankLoss, IsReadAsItWasWritten) {
  const RankLoss loss{
      .rank = 3, .host = "n2", .pid = 4711, .how = RankLoss::How::kFailed, .seconds = 1.5, .why = "why", .doing = "doing"};
  EXPECT_EQ(bytes_of(loss_from(bytes_of(loss))), bytes_of(loss));
  EXPECT_THROW(loss_from("no loss"), InternalError);
}

}  // namespace
}  // namespace sluice::comm::heartbeat_test
