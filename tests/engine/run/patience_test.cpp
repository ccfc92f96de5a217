#include "engine/run/patience.h"

#include <gtest/gtest.h>

namespace sluice::engine::patience_test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Seconds after which it is over, asked every quarter of one; `saves(second)`: a node waits for its model to be written.
template <class Saves>
double lasts(bool stalled, Saves saves) {
  Patience patience;
  int64_t now = 5 * kSecond;
  while (!patience.is_over(now, stalled, saves(static_cast<double>(now) / kSecond - 5))) now += kSecond / 4;
  return static_cast<double>(now) / kSecond - 5;
}

const auto kNothing = [](double) { return false; };

TEST(Patience, IsShorterWhereANodeHangs) {
  EXPECT_EQ(lasts(false, kNothing), 8);
  EXPECT_EQ(lasts(true, kNothing), 3);
}

TEST(Patience, DoesNotCountWhatAModelTakesToBeWritten) {
  EXPECT_EQ(lasts(false, [](double second) { return second > 1 && second <= 61; }), 8 + 60);
}

TEST(Patience, EndsWithADiskThatNeverAnswers) {
  EXPECT_EQ(lasts(false, [](double) { return true; }), 3600);
}

}  // namespace
}  // namespace sluice::engine::patience_test
