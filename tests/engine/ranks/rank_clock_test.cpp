#include "engine/ranks/rank_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/engine/ranks/mail_in_one_process.h"

namespace sluice::engine::rank_clock_test {
namespace {

using testing::MailInOneProcess;

constexpr int64_t kSecond_ns = 1'000'000'000;

ClockOffset known(RankClock& clock) {
  for (int looks = 0; looks < 6000; ++looks) {
    if (const auto offset = clock.offset()) return *offset;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "nothing became known";
  return {};
}

TEST(RankClock, FindsHowFarAnotherClockIsBehindWithinItsError) {
  MailInOneProcess mail(2, 7, /*pause_us=*/2000);
  RankClock first(mail.rank(0), RankClock::steady_ns, "first");
  RankClock second(
      mail.rank(1), [] { return RankClock::steady_ns() - 5 * kSecond_ns; }, "second");
  const ClockOffset offset = known(second);
  EXPECT_LE(std::abs(offset.ns - 5 * kSecond_ns), offset.error_ns);
  EXPECT_GT(offset.error_ns, 0);
  EXPECT_LT(offset.error_ns, kSecond_ns);
  mail.close();
}

TEST(RankClock, OfOneMachineHasNoError) {
  MailInOneProcess mail(2, 0, 0);
  RankClock second(mail.rank(1));
  EXPECT_FALSE(second.offset()) << "nobody has answered yet";
  RankClock first(mail.rank(0));
  for (RankClock* clock : {&first, &second}) {
    const ClockOffset offset = known(*clock);
    EXPECT_EQ(offset.ns, 0);
    EXPECT_EQ(offset.error_ns, 0);
  }
  mail.close();
}

// It is a minute later at each look, and the clocks have drifted.
TEST(RankClock, AsksAgainWhenWhatItKnowsIsOld) {
  MailInOneProcess mail(2, 0, 0);
  std::atomic<int64_t> later_ns = 0, drift_ns = 0;
  RankClock first(
      mail.rank(0), [&] { return RankClock::steady_ns() + later_ns + drift_ns; }, "first");
  RankClock second(
      mail.rank(1), [&] { return RankClock::steady_ns() + later_ns; }, "second");
  known(second);
  later_ns = 61 * kSecond_ns;
  drift_ns = 10 * kSecond_ns;
  ClockOffset offset;
  for (int looks = 0; looks < 6000 && offset.ns < 5 * kSecond_ns; ++looks) {
    offset = known(second);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(std::abs(offset.ns - drift_ns), offset.error_ns);
  mail.close();
}

}  // namespace
}  // namespace sluice::engine::rank_clock_test
