#include "models/generation/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"

namespace sluice::models {
namespace {

using ::testing::HasSubstr;

std::map<int64_t, int> histogram(const SamplingOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options);
  RandomStream stream(5, 0);
  std::map<int64_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits, stream).id];
  return counts;
}

// Pearson's statistic of the draws against probabilities; ids with probability 0 must not be drawn.
double chi_square(const std::map<int64_t, int>& counts, const std::vector<double>& probabilities, int draws) {
  double statistic = 0;
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const double expected = probabilities[id] * draws;
    const auto found = counts.find(static_cast<int64_t>(id));
    const double seen = found == counts.end() ? 0 : found->second;
    if (expected == 0) {
      EXPECT_EQ(seen, 0) << "id " << id << " cannot be drawn";
      continue;
    }
    statistic += (seen - expected) * (seen - expected) / expected;
  }
  return statistic;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)) + 3.0f);
  return logits;
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  const std::vector<double> p = {0.1, 0.05, 0.5, 0.05, 0.3};
  EXPECT_LT(chi_square(histogram({}, logs(p), 20000), p, 20000), 18.5);  // 4 degrees of freedom, 1 in 1000
}

TEST(Sampler, DrawsInProportionFromAVocabularyOfManyRuns) {
  std::vector<double> p(1000);
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) total += p[i] = 1.0 + static_cast<double>(i % 7);
  for (double& value : p) value /= total;
  EXPECT_LT(chi_square(histogram({}, logs(p), 100000), p, 100000), 1143.9);  // 999 degrees of freedom, 1 in 1000
}

TEST(Sampler, TemperatureSharpensTheDistribution) {
  const std::vector<double> p = {0.6, 0.3, 0.1}, squared = {0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46};
  EXPECT_LT(chi_square(histogram({.temperature = 0.5}, logs(p), 20000), squared, 20000), 13.8);  // 2 degrees, 1 in 1000
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  const std::vector<double> p = {0.1, 0.05, 0.5, 0.05, 0.3};
  const std::vector<double> kept = {0, 0, 0.5 / 0.8, 0, 0.3 / 0.8};
  EXPECT_LT(chi_square(histogram({.top_k = 2}, logs(p), 20000), kept, 20000), 10.8);
}

TEST(Sampler, TopKOfOneIsTheLikeliestAndOfTheVocabularyChangesNothing) {
  const std::vector<double> p = {0.1, 0.2, 0.4, 0.3};
  EXPECT_EQ(histogram({.top_k = 1}, logs(p), 100), (std::map<int64_t, int>{{2, 100}}));
  EXPECT_LT(chi_square(histogram({.top_k = 9}, logs(p), 20000), p, 20000), 16.3);
}

TEST(Sampler, TopPKeepsTheTokenThatCrossesTheThreshold) {
  const std::vector<double> p = {0.1, 0.05, 0.5, 0.05, 0.3};
  const std::vector<double> kept = {0, 0, 0.5 / 0.8, 0, 0.3 / 0.8};
  EXPECT_LT(chi_square(histogram({.top_p = 0.6}, logs(p), 20000), kept, 20000), 10.8);
  EXPECT_EQ(histogram({.top_p = 1e-9}, logs(p), 100), (std::map<int64_t, int>{{2, 100}}));
}

TEST(Sampler, TopPIsAShareOfWhatTopKLeft) {
  // top_k leaves 0.4, 0.3, 0.2 of 0.9: shares 0.44, 0.33, 0.22. top_p = 0.75 of it needs two; of the whole it would need three.
  const std::vector<double> p = {0.2, 0.4, 0.1, 0.3}, kept = {0, 0.4 / 0.7, 0, 0.3 / 0.7};
  EXPECT_LT(chi_square(histogram({.top_k = 3, .top_p = 0.75}, logs(p), 20000), kept, 20000), 10.8);
}

TEST(Sampler, EqualLogitsAreOrderedById) {
  const std::vector<float> logits = {1, 2, 2, 2};
  EXPECT_EQ(histogram({.temperature = 0}, logits, 10), (std::map<int64_t, int>{{1, 10}}));
  EXPECT_EQ(histogram({.top_k = 1}, logits, 10), (std::map<int64_t, int>{{1, 10}}));
  EXPECT_EQ(histogram({.top_k = 2}, logits, 1000).count(3), 0u);
}

TEST(Sampler, LogProbabilitiesCountTheTemperatureButNotTheTruncation) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.8f)};
  RandomStream stream(1, 0);
  EXPECT_NEAR(Sampler({.top_k = 1}).sample(logits, stream).logprob, std::log(0.8), 1e-6);
  EXPECT_NEAR(Sampler({.top_p = 0.1}).sample(logits, stream).logprob, std::log(0.8), 1e-6);
  EXPECT_NEAR(Sampler({.temperature = 0.5, .top_k = 1}).sample(logits, stream).logprob, std::log(0.64 / 0.68), 1e-6);
  EXPECT_NEAR(Sampler({.temperature = 0}).sample(logits, stream).logprob, std::log(0.8), 1e-6);
}

TEST(Sampler, LogProbabilitiesOfUnlikelyTokensAreExact) {
  std::vector<float> logits(5000, 0.0f);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 8);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  Sampler sampler({});
  RandomStream stream(2, 0);
  for (int i = 0; i < 200; ++i) {
    const SampledToken token = sampler.sample(logits, stream);
    EXPECT_NEAR(token.logprob, logits[token.id] - std::log(total), 1e-6);
  }
}

TEST(Sampler, ATinyTemperatureIsGreedyAndFinite) {
  const std::vector<float> logits = {0.5f, 90.0f, -40.0f};
  RandomStream stream(3, 0);
  const SampledToken token = Sampler({.temperature = 1e-6}).sample(logits, stream);
  EXPECT_EQ(token.id, 1);
  EXPECT_EQ(token.logprob, 0.0f);
}

TEST(Sampler, EveryPositionOfTheVocabularyCanBeDrawnWhateverItsSize) {
  for (const size_t size : {1u, 2u, 15u, 16u, 17u, 33u, 255u, 256u, 257u}) {
    std::vector<float> logits(size, -80.0f);
    logits[size - 1] = 20.0f;
    EXPECT_EQ(histogram({}, logits, 5), (std::map<int64_t, int>{{static_cast<int64_t>(size) - 1, 5}})) << size;
  }
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> logits(40, 1.0f);
    logits[33] = bad;
    RandomStream stream(4, 0);
    try {
      Sampler({}).sample(logits, stream);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("logits are not finite"));
    }
  }
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Sampler({.temperature = -1}), UserError);
  EXPECT_THROW(Sampler({.temperature = NAN}), UserError);
  EXPECT_THROW(Sampler({.top_k = -1}), UserError);
  EXPECT_THROW(Sampler({.top_p = 0}), UserError);
  EXPECT_THROW(Sampler({.top_p = 1.5}), UserError);
}

}  // namespace
}  // namespace sluice::models
