#include "cli/run/run_fate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/left_behind.h"
#include "comm/link_lost.h"

namespace sluice::cli::run_fate_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::exception_ptr failure(const std::string& what) { return std::make_exception_ptr(UserError(what)); }

std::string said(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return message_of(thrown);
  }
}

/// A run that keeps what it is told, and what the others are. Two ranks may be lost.
class RunFateTest : public ::testing::Test {
 protected:
  RunFateTest() { begin(/*time_to_notice=*/60); }

  void begin(double time_to_notice) {
    fate_.begin({.time_to_notice = std::chrono::duration<double>(time_to_notice),
                 .expendable = 2,
                 .warn = [this](const std::string& why) { warned_.push_back(why); }});
  }

  void begin_run() {
    fate_.watch({.failed =
                     [this](const std::exception_ptr& error) {
                       failures_.push_back(said(error));
                       has_failed_.set_value();
                     },
                 .sign = {},
                 .lost = [this](int rank, const std::string& why) { lost_.emplace_back(rank, why); },
                 .back = [this](int rank, int64_t incarnation) { back_.emplace_back(rank, incarnation); }});
  }

  std::vector<std::string> failures_, warned_;
  std::vector<std::pair<int, std::string>> lost_;
  std::vector<std::pair<int, int64_t>> back_;
  std::promise<void> has_failed_;
  RunFate fate_;  // last: its threads use the rest
};

TEST_F(RunFateTest, AFailureIsToldOnceTheFirst) {
  begin_run();
  EXPECT_FALSE(fate_.others_failed());
  fate_.fail(failure("rank 3 is lost"));
  fate_.fail(failure("rank 4 is lost"));
  EXPECT_THAT(failures_, ElementsAre("rank 3 is lost"));
  EXPECT_TRUE(fate_.others_failed());
  EXPECT_FALSE(fate_.was_given_up());
  EXPECT_TRUE(fate_.give_up().stop_requested());
}

TEST_F(RunFateTest, WhatIsKnownBeforeIsToldWhenTheRunBegins) {
  fate_.lose(5, "rank 5 gave no sign");
  EXPECT_TRUE(fate_.take_back(5, 7));
  fate_.fail(failure("rank 3 is lost"));
  begin_run();
  EXPECT_THAT(lost_, ElementsAre(Pair(5, "rank 5 gave no sign")));
  EXPECT_THAT(back_, ElementsAre(Pair(5, 7)));
  EXPECT_THAT(failures_, ElementsAre("rank 3 is lost"));
}

TEST_F(RunFateTest, ARunThatHasBegunKnowsHowToEndWithoutThoseThatSample) {
  begin_run();
  fate_.lose(5, "gone");
  fate_.lose(6, "gone too");
  EXPECT_THAT(lost_, ElementsAre(Pair(5, "gone"), Pair(6, "gone too")));
  EXPECT_FALSE(fate_.others_failed());
}

TEST_F(RunFateTest, BeforeTheRunTheLossOfAllThatSampleIsAFailure) {
  fate_.lose(5, "rank 5 gave no sign");
  EXPECT_FALSE(fate_.others_failed());
  fate_.lose(6, "rank 6 gave no sign");
  begin_run();
  EXPECT_THAT(failures_, ElementsAre("rank 6 gave no sign, and no other rank is left that samples"));
}

TEST_F(RunFateTest, LossesAreToldToWhoeverAsksForThem) {
  std::vector<int> lost;
  fate_.lose(5, "gone");
  fate_.tell_of_losses([&](int rank) { lost.push_back(rank); });
  begin_run();
  fate_.lose(6, "gone too");
  EXPECT_THAT(lost, ElementsAre(5, 6));
}

TEST_F(RunFateTest, AfterItsEndNobodyIsTold) {
  begin_run();
  EXPECT_TRUE(fate_.end());
  EXPECT_FALSE(fate_.end());
  fate_.fail(failure("rank 3 is lost"));
  fate_.lose(5, "gone");
  EXPECT_FALSE(fate_.take_back(5, 1));
  EXPECT_THAT(failures_, IsEmpty());
  EXPECT_THAT(lost_, IsEmpty());
  EXPECT_FALSE(fate_.others_failed());
}

TEST_F(RunFateTest, OthersHearOfWhatIsDamagedAndNotOfABrokenConnection) {
  begin_run();
  fate_.hear_of(std::make_exception_ptr(comm::LinkLost("the connection with rank 1 broke")));
  EXPECT_THAT(failures_, IsEmpty()) << "the heartbeat says it better";
  fate_.hear_of(failure("a chunk is damaged"));
  EXPECT_THAT(failures_, ElementsAre("a chunk is damaged"));
  EXPECT_EQ(warned_.size(), 1u);
}

TEST_F(RunFateTest, ABrokenConnectionOfWhichNothingElseIsKnownIsTheFailure) {
  begin(/*time_to_notice=*/0.01);
  begin_run();
  fate_.hear_of(std::make_exception_ptr(comm::LinkLost("the connection with rank 1 broke")));
  has_failed_.get_future().wait();
  EXPECT_THAT(failures_, ElementsAre("the connection with rank 1 broke"));
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(RunFateTest, WhoWaitsGetsWhatComesOrTheFailure) {
  begin_run();
  std::optional<int> number;
  const auto look = [&] { return number; };
  auto waits = std::async(std::launch::async, [&] { return fate_.await(look); });
  fate_.note([&] { number = 7; });
  EXPECT_EQ(waits.get(), 7);
  fate_.fail(failure("rank 3 is lost"));
  EXPECT_THROW(fate_.await(look), UserError);
  EXPECT_THROW(fate_.throw_what_is_noticed(), UserError);
}

TEST_F(RunFateTest, ARankThatCameBackIsInWhenRank0SaysSo) {
  begin_run();
  EXPECT_TRUE(fate_.is_in());
  fate_.begin_to_come_back();
  EXPECT_FALSE(fate_.is_in());
  fate_.let_in(12);
  EXPECT_TRUE(fate_.is_in());
  EXPECT_EQ(fate_.await_entry(), 12);
  fate_.be_late();
  EXPECT_FALSE(fate_.others_failed()) << "it ends by itself";
}

TEST_F(RunFateTest, ARankThatCameBackIsTooLateWhereTheRunEndsBefore) {
  RunFate answered;
  answered.begin_to_come_back();
  answered.let_in(std::nullopt);
  EXPECT_THROW(answered.await_entry(), comm::CameTooLate);

  begin_run();
  fate_.be_late();
  EXPECT_FALSE(fate_.others_failed());
  fate_.begin_to_come_back();
  EXPECT_THAT(failures_, ElementsAre("the run has ended, and this rank was not in it yet"));
}

TEST_F(RunFateTest, TheOthersGoOnWithoutARankThatIsLeftBehind) {
  begin_run();
  fate_.fail(std::make_exception_ptr(comm::LeftBehind("the others have given this rank up", "look whether it was stopped")));
  EXPECT_TRUE(fate_.was_given_up());
}

}  // namespace
}  // namespace sluice::cli::run_fate_test
