#include "engine/contract/params/scheduled_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/json/json.h"
#include "tests/source_folder.h"

namespace sluice::engine::scheduled_number_test {
namespace {

template <class E>
E named(const std::string& name) {
  for (const auto& [value, known] : enum_names(E{})) {
    if (name == known) return value;
  }
  throw std::invalid_argument(name);
}

ValueSchedule schedule_of(const Json& given) {
  const int64_t iterations = given["iterations"];
  const double from = given["from"];
  return {.shape = named<ScheduleShape>(given["schedule"]),
          .from = from,
          .to = given.value("to", 0.0),
          .iterations = iterations,
          .warmup = iterations_of(given.value("warmup", 0.0), iterations),
          .decay = iterations_of(given.value("decay", 0.0), iterations),
          .decay_shape = named<DecayShape>(given.value("decay_shape", std::string("cosine")))};
}

void expect_numbers(const char* file, size_t cases_at_least, double tolerance) {
  const Json cases = read_json(std::string(tests::source_folder()) + "/tests/golden/" + file);
  ASSERT_GE(cases.size(), cases_at_least);
  for (const Json& given : cases) {
    const ValueSchedule schedule = schedule_of(given);
    const double scale = std::max(std::abs(schedule.lowest()), std::abs(schedule.highest()));
    int64_t iteration = 0;
    for (const Json& expected : given["numbers"]) {
      EXPECT_NEAR(schedule.at(iteration), expected.get<double>(), tolerance * scale) << given.dump() << " at " << iteration;
      ++iteration;
    }
    EXPECT_GE(iteration, schedule.iterations);
  }
}

// tests/oracles/learning_rate_reference.py made both.
TEST(ScheduledNumber, OfALearningRateIsThatOfTransformersAtEveryStep) { expect_numbers("models/learning_rates.json", 13, 1e-15); }

// Which add up step by step, and round as they do.
TEST(ScheduledNumber, RisesFallsAndStaysAsTheSchedulersOfTorch) { expect_numbers("models/scheduled_numbers.json", 7, 1e-14); }

TEST(ScheduledNumber, HasItsEndsExactlyAndNeverLeavesThem) {
  for (const ScheduleShape shape : {ScheduleShape::kLinear, ScheduleShape::kCosine, ScheduleShape::kWsd}) {
    for (const auto& [from, to] : {std::pair(0.1, 0.3), std::pair(0.7, 0.1), std::pair(0.2, 0.2)}) {
      const ValueSchedule schedule{.shape = shape, .from = from, .to = to, .iterations = 997, .decay = 500};
      EXPECT_EQ(schedule.at(0), from);
      EXPECT_EQ(schedule.at(997), to);
      EXPECT_EQ(schedule.at(100000), to);
      for (int64_t i = 0; i < 1000; ++i) {
        EXPECT_GE(schedule.at(i), schedule.lowest());
        EXPECT_LE(schedule.at(i), schedule.highest());
      }
    }
  }
}

TEST(ScheduledNumber, ANumberIsTheSameInEveryIteration) {
  const ScheduledNumber number = 0.25;
  EXPECT_EQ(number.at(0), 0.25);
  EXPECT_EQ(number.at(1000), 0.25);
  EXPECT_TRUE(number.is(0.25));
  EXPECT_FALSE(number.changes());
  EXPECT_EQ(number.written(), "0.25");
}

TEST(ScheduledNumber, AShareOfTheRunIsRoundedUp) {
  EXPECT_EQ(iterations_of(0.03, 100), 3);
  EXPECT_EQ(iterations_of(0.03, 101), 4);
  EXPECT_EQ(iterations_of(1, 100), 1);
  EXPECT_EQ(iterations_of(0, 100), 0);
}

TEST(ScheduledNumber, ItsTextSaysWhereItGoes) {
  EXPECT_EQ((ValueSchedule{.from = 1e-3, .iterations = 9}).text(), "");
  EXPECT_EQ((ValueSchedule{.from = 1e-3, .iterations = 9, .warmup = 1}).text(), "0.001, warm-up of 1 iteration");
  EXPECT_EQ((ValueSchedule{.shape = ScheduleShape::kCosine, .from = 1e-5, .to = 0.1 * 1e-5, .iterations = 9}).text(),
            "1e-05, cosine to 1e-06");
  EXPECT_EQ(
      (ValueSchedule{.shape = ScheduleShape::kWsd, .from = 2e-3, .to = 1e-3, .iterations = 9, .warmup = 2, .decay = 3}).text(),
      "0.002, warm-up of 2 iterations, in the last 3 iterations to 0.001");
}

}  // namespace
}  // namespace sluice::engine::scheduled_number_test
