#include "data/mixture.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

namespace sluice::data::mixture_test {
namespace {

using testing::ElementsAre;

std::vector<size_t> sources(const Mixture& mixture, uint64_t count) {
  std::vector<size_t> drawn;
  for (uint64_t i = 0; i < count; ++i) drawn.push_back(mixture.at(i).source);
  return drawn;
}

// The largest distance of any source from its share, in rows, over all prefixes of `count` rows.
double largest_error(const Mixture& mixture, const std::vector<double>& weights, uint64_t count) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> given(weights.size(), 0);
  double largest = 0;
  for (uint64_t n = 1; n <= count; ++n) {
    ++given[mixture.at(n - 1).source];
    for (size_t i = 0; i < weights.size(); ++i)
      largest = std::max(largest, std::abs(given[i] - static_cast<double>(n) * weights[i] / sum));
  }
  return largest;
}

TEST(Mixture, OneSourceGivesEverything) {
  const Mixture mixture(std::vector<double>{0.3}, 1);
  for (uint64_t i = 0; i < 10'000; ++i) {
    EXPECT_EQ(mixture.at(i).source, 0u);
    EXPECT_EQ(mixture.at(i).index, i);
  }
}

TEST(Mixture, EveryPrefixHasItsShareOfEachSourceButForLessThanARow) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> weights(1 + random() % 12);
    for (double& weight : weights) weight = round % 2 == 0 ? 1 + random() % 50 : (1 + random() % 999) / 1000.0;
    const Mixture mixture(weights, static_cast<uint64_t>(round));
    EXPECT_LT(largest_error(mixture, weights, 20'000), 1.0) << testing::PrintToString(weights);
  }
}

TEST(Mixture, SharesOfOneToNinetyNineAreExact) {
  const Mixture mixture(std::vector<double>{0.99, 0.01}, 3);
  uint64_t rare = 0;
  for (uint64_t i = 0; i < 100'000; ++i) rare += mixture.at(i).source;
  EXPECT_EQ(rare, 1000u);
}

TEST(Mixture, WeightsWithoutAShortPeriodAreRoundedToMillionths) {
  const std::vector<double> weights{1.0 / 3, std::sqrt(2.0), 3.0};
  EXPECT_LT(largest_error(Mixture(weights, 1), weights, 1'000'000), 3.0);
}

TEST(Mixture, ASourceOfNextToNoWeightStillComes) {
  const Mixture mixture(std::vector<double>{1e-12, 5e8}, 1);
  uint64_t rare = 0;
  for (uint64_t i = 0; i < 3'000'000; ++i) rare += mixture.at(i).source == 0;
  EXPECT_GE(rare, 2u);
  EXPECT_LE(rare, 3u);
}

TEST(Mixture, IndexCountsTheRowsOfItsSource) {
  const Mixture mixture(std::vector<double>{5, 2, 3}, 9);
  std::vector<uint64_t> given(3, 0);
  for (uint64_t i = 0; i < 30'000; ++i) {
    const Mixture::Draw draw = mixture.at(i);
    ASSERT_EQ(draw.index, given[draw.source]++) << i;
  }
}

TEST(Mixture, APositionIsTheSameInWhateverOrderItIsAskedFor) {
  const Mixture walked(std::vector<double>{2, 1, 4}, 5), asked(std::vector<double>{2, 1, 4}, 5);
  std::vector<uint64_t> index;
  for (uint64_t i = 0; i < 9000; ++i) index.push_back(walked.at(i).index);
  for (uint64_t i = 9000; i-- > 0;) ASSERT_EQ(asked.at(i).index, index[i]);
}

TEST(Mixture, TheSeedDecidesWhoOfTheEquallyDueComesFirst) {
  const std::vector<double> even{1, 1};
  EXPECT_EQ(sources(Mixture(even, 1), 100), sources(Mixture(even, 1), 100));
  EXPECT_NE(sources(Mixture(even, 1), 100), sources(Mixture(even, 2), 100));
}

}  // namespace
}  // namespace sluice::data::mixture_test
