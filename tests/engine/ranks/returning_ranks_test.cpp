#include "engine/ranks/returning_ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "tests/engine/ranks/mail_in_one_process.h"

namespace sluice::engine::returning_ranks_test {
namespace {

// Rank 0, and one that comes back.
class ReturningRanksTest : public ::testing::Test {
 protected:
  using Answer = std::optional<int64_t>;

  ReturningRanksTest() { returning_->listen(); }

  std::future<Answer> ask(int64_t incarnation) {
    const auto answer = std::make_shared<std::promise<Answer>>();
    ask_to_come_in(mail_.rank(1), incarnation, [answer](Answer version) { answer->set_value(version); });
    return answer->get_future();
  }

  void await_that_it_waits() {
    while (returning_->waiting().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  testing::MailInOneProcess mail_{2, 1, 50};
  const std::shared_ptr<ReturningRanks> returning_ = std::make_shared<ReturningRanks>(mail_.rank(0));
};

TEST_F(ReturningRanksTest, WhoWaitsIsToldTheFirstVersion) {
  auto answer = ask(1);
  await_that_it_waits();
  EXPECT_EQ(returning_->waiting().front().incarnation, 1);
  returning_->answer(1, 7);
  EXPECT_EQ(answer.get(), Answer(7));
  EXPECT_TRUE(returning_->waiting().empty());
}

TEST_F(ReturningRanksTest, WhoWaitsIsToldThatTheRunEnds) {
  auto answer = ask(1);
  await_that_it_waits();
  returning_->end();
  EXPECT_EQ(answer.get(), Answer());
}

TEST_F(ReturningRanksTest, WhoComesLaterIsToldThatTheRunHasEnded) {
  returning_->end();
  EXPECT_EQ(ask(1).get(), Answer());
}

// It waited for an answer for ever: rank 0 had forgotten it.
TEST_F(ReturningRanksTest, ALossThatIsHeardLateIsOfTheProcessBefore) {
  auto answer = ask(1);
  await_that_it_waits();
  returning_->lose(1, 0);
  ASSERT_EQ(returning_->waiting().size(), 1u);
  returning_->end();
  EXPECT_EQ(answer.get(), Answer());
}

TEST_F(ReturningRanksTest, AProcessThatIsLostDoesNotWait) {
  auto answer = ask(1);
  await_that_it_waits();
  returning_->lose(1, 1);
  EXPECT_TRUE(returning_->waiting().empty());
}

}  // namespace
}  // namespace sluice::engine::returning_ranks_test
