#include "models/sample/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/numbers/random.h"
#include "models/kernels/parallel.h"

namespace sluice::models::sampler_test {
namespace {

using ::testing::HasSubstr;

int64_t size_of(const std::vector<float>& logits) { return static_cast<int64_t>(logits.size()); }

// Of one row that follows nothing.
SampledToken drawn(Sampler& sampler, const std::vector<float>& logits, double uniform) {
  const TokenDraw draw{.uniform = uniform};
  SampledToken token;
  sampler.sample(logits, {&draw, 1}, {&token, 1});
  return token;
}

SampledToken drawn(const SamplingOptions& options, const std::vector<float>& logits, double uniform = 0.5) {
  Sampler sampler(options, size_of(logits));
  return drawn(sampler, logits, uniform);
}

std::map<int64_t, int> histogram(const SamplingOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options, size_of(logits));
  RandomStream stream(5, 0);
  std::map<int64_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[drawn(sampler, logits, stream.uniform()).id];
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
  EXPECT_NEAR(drawn({.top_k = 1}, logits).logprob, std::log(0.8), 1e-6);
  EXPECT_NEAR(drawn({.top_p = 0.1}, logits).logprob, std::log(0.8), 1e-6);
  EXPECT_NEAR(drawn({.temperature = 0.5, .top_k = 1}, logits).logprob, std::log(0.64 / 0.68), 1e-6);
  EXPECT_NEAR(drawn({.temperature = 0}, logits).logprob, std::log(0.8), 1e-6);
}

TEST(Sampler, LogProbabilitiesOfUnlikelyTokensAreExact) {
  std::vector<float> logits(5000, 0.0f);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 8);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  RandomStream stream(2, 0);
  for (int i = 0; i < 200; ++i) {
    const SampledToken token = drawn({}, logits, stream.uniform());
    EXPECT_NEAR(token.logprob, logits[token.id] - std::log(total), 1e-6);
  }
}

TEST(Sampler, ATinyTemperatureIsGreedyAndFinite) {
  const std::vector<float> logits = {0.5f, 90.0f, -40.0f};
  const SampledToken token = drawn({.temperature = 1e-6}, logits);
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
    try {
      drawn({}, logits);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("logits are not finite"));
    }
  }
}

TEST(Sampler, MinPKeepsWhatIsLikelyBesideTheLikeliest) {
  const std::vector<double> p = {0.1, 0.05, 0.5, 0.05, 0.3};
  const std::vector<double> kept = {0.1 / 0.9, 0, 0.5 / 0.9, 0, 0.3 / 0.9};
  EXPECT_LT(chi_square(histogram({.min_p = 0.15}, logs(p), 20000), kept, 20000), 13.8);  // 2 degrees, 1 in 1000
  EXPECT_EQ(histogram({.min_p = 1}, logs(p), 100), (std::map<int64_t, int>{{2, 100}}));
}

// What is drawn by sorting the whole row, in double precision.
int64_t drawn_from_sorted(const SamplingOptions& options, const std::vector<float>& logits, double uniform) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const auto weight = [&](size_t id) {
    return std::exp((static_cast<double>(logits[id]) - static_cast<double>(logits[order[0]])) / options.temperature);
  };
  const auto mass = [&] {
    return std::accumulate(order.begin(), order.end(), 0.0, [&](double sum, size_t id) { return sum + weight(id); });
  };
  if (options.top_k > 0) order.resize(std::min<size_t>(order.size(), static_cast<size_t>(options.top_k)));
  double nucleus = 0;
  const double wanted = options.top_p * mass();
  size_t count = 0;
  while (count < order.size() && nucleus < wanted) nucleus += weight(order[count++]);
  order.resize(std::max<size_t>(count, 1));
  while (weight(order.back()) < options.min_p) order.pop_back();
  double left = uniform * mass();
  for (const size_t id : order) {
    if (left < weight(id)) return static_cast<int64_t>(id);
    left -= weight(id);
  }
  return static_cast<int64_t>(order.back());
}

// Rounding of the weights may take a draw to the neighbour now and then, where it falls between two tokens.
TEST(Sampler, DrawsFromTheLikeliestAsFromASortedRow) {
  RandomStream random(8, 0);
  int others = 0, draws = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + random.below(3000));
    const double spread = 0.01 * std::pow(10.0, static_cast<double>(random.below(4)));
    const bool ties = random.below(3) == 0;
    for (float& logit : logits) {
      const double value = spread * std::log(random.uniform() + 1e-9);
      logit = static_cast<float>(ties ? std::round(value) : value);
    }
    const SamplingOptions options{.temperature = 0.5 + random.uniform(),
                                  .top_k = random.below(2) ? static_cast<int64_t>(random.below(200)) : 0,
                                  .top_p = random.below(2) ? 1 - random.uniform() : 1.0,
                                  .min_p = random.below(3) ? 0.0 : random.uniform()};
    if (!options.truncates()) continue;  // then tokens are looked for by their ids
    RandomStream stream(9, static_cast<uint64_t>(round));
    for (int i = 0; i < 5; ++i, ++draws) {
      const double uniform = stream.uniform();
      others += drawn(options, logits, uniform).id != drawn_from_sorted(options, logits, uniform);
    }
  }
  EXPECT_LE(others, draws / 500);
}

TEST(Sampler, PenaltiesChangeTheLogitsOfTokensThatOccur) {
  const std::vector<float> logits = {2.0f, 1.0f, -1.0f, 0.5f, 1.5f};
  const std::vector<int64_t> prompt{0, 2, 0}, response{1, 4, 1};
  const SamplingOptions options{.repetition_penalty = 1.6, .presence_penalty = 0.25, .frequency_penalty = 0.5};
  const std::vector<double> penalized = {2.0 / 1.6, 1.0 / 1.6 - 1.25, -1.6, 0.5, 1.5 / 1.6 - 0.75};
  std::vector<double> expected;
  double total = 0;
  for (const double logit : penalized) total += std::exp(logit);
  for (const double logit : penalized) expected.push_back(std::exp(logit) / total);
  Sampler sampler(options, 5);
  RandomStream stream(6, 0);
  std::map<int64_t, int> counts;
  for (int i = 0; i < 20000; ++i) {
    const TokenDraw draw{.uniform = stream.uniform(), .prompt = prompt, .response = response};
    SampledToken token;
    sampler.sample(logits, {&draw, 1}, {&token, 1});
    ++counts[token.id];
  }
  EXPECT_LT(chi_square(counts, expected, 20000), 18.5);  // 4 degrees of freedom, 1 in 1000
}

TEST(Sampler, APenaltyChangesTheGreedyTokenButNotWhatIsRecordedOfIt) {
  const std::vector<float> logits = {2.0f, 1.9f};
  const std::vector<int64_t> response{0};
  const std::vector<TokenDraw> draws{{.response = response}, {.greedy = true, .response = response}};
  SampledToken tokens[2];
  Sampler({.temperature = 0, .presence_penalty = 0.5}, 2).sample(logits, draws, tokens);
  EXPECT_EQ(tokens[0].id, 1);
  EXPECT_NEAR(tokens[0].logprob, 1.9 - std::log(std::exp(2.0) + std::exp(1.9)), 1e-6);
  EXPECT_EQ(tokens[1].id, 0);  // a greedy draw knows no options
}

TEST(Sampler, RowsAreDrawnAsEachAloneWithEveryNumberOfThreads) {
  const int64_t threads = loop_threads();
  constexpr size_t kSize = 5000, kRows = 23;
  std::vector<float> logits(kRows * kSize);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(std::sin(static_cast<double>(i * i)) * 5);
  for (const SamplingOptions& options : {SamplingOptions{}, SamplingOptions{.top_k = 40, .top_p = 0.9}})
    for (const int count : {1, 3}) {
      set_loop_threads(count);
      RandomStream stream(3, 0);
      std::vector<TokenDraw> draws;
      for (size_t i = 0; i < kRows; ++i) draws.push_back({.row = static_cast<int64_t>(i), .uniform = stream.uniform()});
      std::vector<SampledToken> tokens(kRows);
      Sampler sampler(options, kSize);
      sampler.sample(logits, draws, tokens);
      for (size_t i = 0; i < kRows; ++i) {
        const auto row = std::span(logits).subspan(i * kSize, kSize);
        const SampledToken alone = drawn(options, {row.begin(), row.end()}, draws[i].uniform);
        EXPECT_EQ(tokens[i].id, alone.id);
        EXPECT_EQ(tokens[i].logprob, alone.logprob);
      }
    }
  set_loop_threads(threads);
}

TEST(Sampler, TheSampleWhoseLogitsAreNotFiniteIsNamed) {
  const std::vector<float> logits = {1, 2, 1, NAN};
  const std::vector<TokenDraw> draws{{.id = 4, .row = 0}, {.id = 7, .row = 1}};
  std::vector<SampledToken> tokens(2);
  EXPECT_THAT([&] { Sampler({}, 2).sample(logits, draws, tokens); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("sample 7: logits are not finite")));
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Sampler({.temperature = -1}, 2), UserError);
  EXPECT_THROW(Sampler({.temperature = NAN}, 2), UserError);
  EXPECT_THROW(Sampler({.top_k = -1}, 2), UserError);
  EXPECT_THROW(Sampler({.top_p = 0}, 2), UserError);
  EXPECT_THROW(Sampler({.top_p = 1.5}, 2), UserError);
  EXPECT_THROW(Sampler({.min_p = -0.1}, 2), UserError);
  EXPECT_THROW(Sampler({.min_p = 1.1}, 2), UserError);
  EXPECT_THROW(Sampler({.repetition_penalty = 0}, 2), UserError);
  EXPECT_THROW(Sampler({.presence_penalty = NAN}, 2), UserError);
  EXPECT_THROW(Sampler({.frequency_penalty = INFINITY}, 2), UserError);
}

}  // namespace
}  // namespace sluice::models::sampler_test
