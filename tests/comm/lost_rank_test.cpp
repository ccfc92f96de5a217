#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/process/free_port.h"
#include "base/process/subprocess.h"

// Ranks as processes of their own (tests/programs/rank.cpp), one of which is killed or stopped.
namespace sluice::comm::lost_rank_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::chrono::seconds kLong{60};  // never reached unless something hangs
constexpr int kRanks = 3;
constexpr int kDeadAfterSeconds = 2;

class LostRankTest : public ::testing::Test {
 protected:
  // `ends`: how each rank ends by itself.
  void start(const std::vector<std::string>& ends) {
    const std::string port = std::to_string(free_port());
    for (size_t rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(std::make_unique<Subprocess>(
          SubprocessOptions{.arguments = {SLUICE_RANK_PROGRAM, std::to_string(rank), std::to_string(kRanks), port,
                                          std::to_string(kDeadAfterSeconds), ends[rank]}}));
    }
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const std::string line = line_of(rank);
      ASSERT_THAT(line, StartsWith("ready ")) << ranks_[rank]->errors();
      pids_.push_back(std::atoi(line.c_str() + 6));
    }
  }

  std::string line_of(size_t rank) {
    Subprocess* const process = ranks_[rank].get();
    const auto until = Subprocess::Clock::now() + kLong;
    while (Subprocess::Clock::now() < until) {
      if (auto line = process->take_line()) return *line;
      if (process->ended()) return "it " + process->how_it_ended();
      Subprocess::exchange({&process, 1}, until);
    }
    return "nothing";
  }

  // What all but `lost` say then, and soon enough.
  void expect_told(size_t lost, const std::string& of_it) {
    const auto begin = Subprocess::Clock::now();
    for (size_t rank = 0; rank < kRanks; ++rank) {
      if (rank == lost) continue;
      const std::string line = line_of(rank);
      EXPECT_THAT(line, StartsWith("lost: rank " + std::to_string(lost) + " (host "));
      EXPECT_THAT(line, HasSubstr(", pid " + std::to_string(pids_[lost]) + ") " + of_it));
    }
    EXPECT_LT(Subprocess::Clock::now() - begin, std::chrono::seconds(kDeadAfterSeconds + 30));
  }

  std::vector<std::unique_ptr<Subprocess>> ranks_;
  std::vector<pid_t> pids_;
};

TEST_F(LostRankTest, NobodyIsLostWhenAllEnd) {
  start({"well", "well", "well"});
  for (size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(line_of(rank), "ended");
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(line_of(rank), "it exited with code 0");
    EXPECT_EQ(ranks_[rank]->errors(), "");
  }
}

TEST_F(LostRankTest, ThatIsKilledIsNamed) {
  start({"never", "never", "never"});
  ::kill(pids_[1], SIGKILL);
  expect_told(1, "gave no sign for ");
}

TEST_F(LostRankTest, ThatIsStoppedIsNamed) {
  start({"never", "never", "never"});
  ::kill(pids_[2], SIGSTOP);
  expect_told(2, "gave no sign for ");
}

TEST_F(LostRankTest, ThatServesTheStoreAndIsKilledIsNamed) {
  start({"never", "never", "never"});
  ::kill(pids_[0], SIGKILL);
  expect_told(0, "has ended without a word; it was last in 'generate'");
}

TEST_F(LostRankTest, ThatServesTheStoreAndIsStoppedIsNamed) {
  start({"never", "never", "never"});
  ::kill(pids_[0], SIGSTOP);
  expect_told(0, "gave no sign for ");
}

TEST_F(LostRankTest, ThatFailsSaysWhy) {
  start({"never", "fails", "never"});
  expect_told(1, "failed: the disk is full");
}

TEST_F(LostRankTest, ThatServesTheStoreAndFailsSaysWhy) {
  start({"fails", "never", "never"});
  expect_told(0, "failed: the disk is full");
}

}  // namespace
}  // namespace sluice::comm::lost_rank_test
