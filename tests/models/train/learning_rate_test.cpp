#include "models/train/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "tests/source_folder.h"

namespace sluice::models {
namespace {

template <class E>
E named(const std::string& name) {
  for (const auto& [value, known] : enum_names(E{})) {
    if (name == known) return value;
  }
  throw std::invalid_argument(name);
}

LearningRate rate_of(const Json& given) {
  const int64_t iterations = given["iterations"];
  return {.shape = named<LearningRateShape>(given["schedule"]),
          .highest = given["learning_rate"],
          .minimum = given.value("minimum", 0.0),
          .iterations = iterations,
          .warmup = iterations_of(given["warmup"], iterations),
          .decay = iterations_of(given.value("decay", 0.0), iterations),
          .decay_shape = named<DecayShape>(given.value("decay_shape", std::string("cosine")))};
}

// tests/oracles/learning_rate_reference.py made them with transformers.
TEST(LearningRate, IsThatOfTransformersAtEveryStep) {
  const Json cases = read_json(std::string(tests::source_folder()) + "/tests/golden/models/learning_rates.json");
  ASSERT_GE(cases.size(), 13);
  for (const Json& given : cases) {
    const LearningRate rate = rate_of(given);
    int64_t iteration = 0;
    for (const Json& expected : given["rates"]) {
      EXPECT_NEAR(rate.at(iteration), expected.get<double>(), 1e-15 * rate.highest) << given.dump() << " at " << iteration;
      ++iteration;
    }
    EXPECT_EQ(iteration, rate.iterations);
  }
}

TEST(LearningRate, AShareOfTheRunIsRoundedUp) {
  EXPECT_EQ(iterations_of(0.03, 100), 3);
  EXPECT_EQ(iterations_of(0.03, 101), 4);
  EXPECT_EQ(iterations_of(1, 100), 1);
  EXPECT_EQ(iterations_of(0, 100), 0);
}

TEST(LearningRate, ItsTextSaysWhereItGoes) {
  EXPECT_EQ((LearningRate{.highest = 1e-3, .iterations = 9}).text(), "");
  EXPECT_EQ((LearningRate{.highest = 1e-3, .iterations = 9, .warmup = 1}).text(), "0.001, warm-up of 1 iteration");
  EXPECT_EQ((LearningRate{.shape = LearningRateShape::kCosine, .highest = 1e-5, .minimum = 0.1, .iterations = 9}).text(),
            "1e-05, cosine to 1e-06");
  EXPECT_EQ(
      (LearningRate{.shape = LearningRateShape::kWsd, .highest = 2e-3, .minimum = 0.5, .iterations = 9, .warmup = 2, .decay = 3})
          .text(),
      "0.002, warm-up of 2 iterations, in the last 3 iterations to 0.001");
}

}  // namespace
}  // namespace sluice::models
