#include "engine/contract/columns/token_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::engine::token_budget_test {
namespace {

TEST(TokenBudget, RefusesWhatIsNotFree) {
  TokenBudget budget(10, [] {});
  EXPECT_TRUE(budget.try_acquire(7));
  EXPECT_FALSE(budget.try_acquire(4));
  EXPECT_TRUE(budget.try_acquire(3));
  EXPECT_EQ(budget.in_flight(), 10);
}

TEST(TokenBudget, TellsWhoWasRefusedWhenCreditReturns) {
  int told = 0;
  TokenBudget budget(10, [&] { ++told; });
  budget.try_acquire(10);
  budget.release(2);
  EXPECT_EQ(told, 0) << "nobody was refused";
  EXPECT_FALSE(budget.try_acquire(4));
  budget.release(0);
  EXPECT_EQ(told, 0);
  budget.release(4);
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(budget.has_free(7));
  budget.release(4);
  EXPECT_EQ(told, 2);
}

TEST(TokenBudget, PeakIsSinceTheLastCall) {
  TokenBudget budget(10, [] {});
  budget.try_acquire(8);
  budget.release(6);
  EXPECT_EQ(budget.take_peak(), 8);
  EXPECT_EQ(budget.take_peak(), 2);
}

TEST(TokenBudget, GivingBackMoreThanWasTakenIsABug) {
  TokenBudget budget(10, [] {});
  budget.try_acquire(3);
  EXPECT_THROW(budget.try_acquire(-1), InternalError);
  budget.release(4);  // as a handle does when it is destroyed
  EXPECT_THROW(budget.try_acquire(1), InternalError);
  EXPECT_THROW(budget.take_peak(), InternalError);
}

TEST(TokenBudget, HoldsUnderThreads) {
  TokenBudget budget(100, [] {});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&budget, t] {
      RandomStream random(1, 0, t);
      for (int i = 0; i < 2000; ++i) {
        const auto tokens = static_cast<int64_t>(random.below(60));
        if (budget.try_acquire(tokens)) budget.release(tokens);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.in_flight(), 0);
  EXPECT_LE(budget.take_peak(), 100);
}

}  // namespace
}  // namespace sluice::engine::token_budget_test
