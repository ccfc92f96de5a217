#include "models/portable/sampler.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"
#include "models/portable/likeliest_tokens.h"
#include "models/sample/sampler.h"
#include "tests/models/devices.h"

// What is drawn with LibTorch's operators is held against the sampler of the CPU, from the same logits and numbers.
namespace sluice::models::portable::sampler_test {
namespace {

constexpr double kNear = 2e-6;  // a number so near the border of two tokens may stand for either: weights are float32

/// Rows of logits, what they follow, and what is drawn from them.
struct Case {
  SamplingOptions options;
  int64_t vocabulary = 0, rows = 0;
  std::vector<float> logits;                     // [R,V]
  std::vector<std::vector<int64_t>> texts;       // of each row
  std::vector<int64_t> prompts;                  // tokens of each text that are its prompt
  std::vector<TokenDraw> draws;                  // of rows in any order
  std::span<const float> row(int64_t i) const {  // [V]
    return std::span(logits).subspan(static_cast<size_t>(i * vocabulary), static_cast<size_t>(vocabulary));
  }
};

SamplingOptions random_options(RandomStream& random, int64_t vocabulary) {
  const auto some = [&](auto value, auto none) { return random.below(2) == 0 ? value : none; };
  SamplingOptions options;
  options.temperature = random.below(8) == 0 ? 0 : 0.4 + random.uniform();
  options.top_k = some(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary + 3))), int64_t{0});
  if (random.below(3) == 0) options.top_k = std::min<int64_t>(options.top_k, 20);
  options.top_p = some(1 - random.uniform(), 1.0);
  options.min_p = random.below(3) == 0 ? random.uniform() * random.uniform() : 0;
  options.repetition_penalty = some(0.5 + random.uniform(), 1.0);
  options.presence_penalty = some(random.uniform() - 0.5, 0.0);
  options.frequency_penalty = some(random.uniform() - 0.5, 0.0);
  if (random.below(3) == 0) options.repetition_penalty = 1, options.presence_penalty = options.frequency_penalty = 0;
  if (random.below(3) == 0) options.top_k = 0, options.top_p = 1, options.min_p = 0;
  return options;
}

std::vector<float> random_logits(RandomStream& random, int64_t size) {
  const double spread = 0.1 * std::pow(10.0, static_cast<double>(random.below(3)));
  const bool ties = random.below(3) == 0;
  std::vector<float> row(static_cast<size_t>(size));
  for (float& logit : row) {
    const double value = std::max(-30.0, spread * (std::log(random.uniform() + 1e-9) + 1));
    logit = static_cast<float>(ties ? std::round(value) : value);
  }
  return row;
}

Case random_case(uint64_t seed) {
  RandomStream random(seed, 3);
  Case made;
  const int64_t sizes[] = {7, 255, 256, 257, 5000, 7 + static_cast<int64_t>(random.below(4994))};
  made.vocabulary = sizes[random.below(6)];
  made.rows = 1 + static_cast<int64_t>(random.below(7));
  made.options = random_options(random, made.vocabulary);
  const int64_t ids = random.below(2) == 0 ? made.vocabulary : 7;  // few ids occur often
  for (int64_t i = 0; i < made.rows; ++i) {
    const std::vector<float> row = random_logits(random, made.vocabulary);
    made.logits.insert(made.logits.end(), row.begin(), row.end());
    std::vector<int64_t> text(1 + random.below(40));
    for (int64_t& id : text) id = static_cast<int64_t>(random.below(static_cast<uint64_t>(ids)));
    made.prompts.push_back(static_cast<int64_t>(1 + random.below(text.size())));
    made.texts.push_back(text);
  }
  const bool in_order = random.below(2) == 0;
  for (int64_t i = 0; i < made.rows + (in_order ? 0 : 3); ++i) {
    const int64_t row = in_order ? i : static_cast<int64_t>(random.below(static_cast<uint64_t>(made.rows)));
    const std::span<const int64_t> text = made.texts[static_cast<size_t>(row)];
    const auto prompt = static_cast<size_t>(made.prompts[static_cast<size_t>(row)]);
    made.draws.push_back({.id = static_cast<uint64_t>(i),
                          .row = row,
                          .uniform = random.below(20) == 0 ? 0 : random.uniform(),
                          .greedy = random.below(6) == 0,
                          .prompt = text.first(prompt),
                          .response = text.subspan(prompt)});
  }
  return made;
}

// After a text stand ids that do not belong to it.
Texts texts_on(at::Device device, const Case& of) {
  size_t longest = 0;
  for (const auto& text : of.texts) longest = std::max(longest, text.size());
  std::vector<int64_t> ids, lengths;
  for (const auto& text : of.texts) {
    lengths.push_back(static_cast<int64_t>(text.size()));
    for (size_t i = 0; i < longest + 3; ++i)
      ids.push_back(i < text.size() ? text[i] : static_cast<int64_t>(i) % std::min<int64_t>(7, of.vocabulary));
  }
  return {at::tensor(ids).view({of.rows, -1}).to(device), at::tensor(lengths).view({of.rows, 1}).to(device)};
}

std::vector<SampledToken> drawn_on(at::Device device, const Case& of, int64_t scratch_bytes = Sampler::kScratchBytes) {
  std::vector<SampledToken> tokens(of.draws.size());
  const at::Tensor logits = at::tensor(of.logits).view({of.rows, of.vocabulary}).to(device);
  Sampler(of.options, scratch_bytes).sample(logits, texts_on(device, of), of.draws, tokens);
  return tokens;
}

std::vector<SampledToken> drawn_by_cpu(const Case& of) {
  std::vector<SampledToken> tokens(of.draws.size());
  models::Sampler(of.options, of.vocabulary).sample(of.logits, of.draws, tokens);
  return tokens;
}

std::vector<float> penalized_row(const Case& of, const TokenDraw& draw) {
  const SamplingOptions& options = of.options;
  std::vector<float> row(of.row(draw.row).begin(), of.row(draw.row).end());
  for (size_t id = 0; id < row.size(); ++id) {
    const auto in_prompt = std::ranges::count(draw.prompt, static_cast<int64_t>(id));
    const auto times = std::ranges::count(draw.response, static_cast<int64_t>(id));
    const auto repetition = static_cast<float>(options.repetition_penalty);
    if (in_prompt + times > 0) row[id] = row[id] > 0 ? row[id] / repetition : row[id] * repetition;
    if (times > 0)
      row[id] -= static_cast<float>(options.frequency_penalty) * static_cast<float>(times) +
                 static_cast<float>(options.presence_penalty);
  }
  return row;
}

// The definition, in float64.
int64_t drawn_by_definition(SamplingOptions options, const std::vector<float>& row, double uniform) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const float top = *std::ranges::max_element(row);
  const auto weight = [&](size_t id) { return std::exp((static_cast<double>(row[id]) - top) / options.temperature); };
  const auto mass = [&] {
    return std::accumulate(order.begin(), order.end(), 0.0, [&](double sum, size_t id) { return sum + weight(id); });
  };
  if (options.truncates()) std::ranges::stable_sort(order, [&](size_t a, size_t b) { return row[a] > row[b]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(options.top_k)));
  if (options.top_p < 1) {
    const double wanted = options.top_p * mass();
    size_t count = 0;
    for (double reached = 0; count < order.size() && reached < wanted; ++count) reached += weight(order[count]);
    order.resize(std::max<size_t>(count, 1));
  }
  while (order.size() > 1 && options.min_p > 0 && weight(order.back()) < options.min_p) order.pop_back();
  double left = uniform * mass();
  for (const size_t id : order) {
    if (left < weight(id)) return static_cast<int64_t>(id);
    left -= weight(id);
  }
  return static_cast<int64_t>(order.back());
}

// Numbers and limits that are hardly others give the one token and the other.
bool is_border(const Case& of, const TokenDraw& draw, int64_t one, int64_t other) {
  if (of.options.temperature == 0 || draw.greedy) return false;
  const std::vector<float> row = penalized_row(of, draw);
  bool gives_one = false, gives_other = false;
  for (const double number : {-kNear, 0.0, kNear})
    for (const double top_p : {-kNear, 0.0, kNear})
      for (const double min_p : {-kNear, 0.0, kNear}) {
        SamplingOptions options = of.options;
        if (options.top_p < 1) options.top_p = std::min(1.0, options.top_p + top_p);
        options.min_p *= 1 + min_p;
        const int64_t id = drawn_by_definition(options, row, std::clamp(draw.uniform + number, 0.0, 1.0));
        gives_one |= id == one;
        gives_other |= id == other;
      }
  return gives_one && gives_other;
}

class LibrarySampler : public devices::OnDevice {};

TEST_P(LibrarySampler, DrawsTheTokensOfTheSamplerOfTheCpu) {
  constexpr uint64_t kCases = 600;
  size_t draws = 0, others = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const Case of = random_case(seed);
    const auto here = drawn_by_cpu(of), there = drawn_on(device(), of, seed % 2 == 0 ? 1 : Sampler::kScratchBytes);
    for (size_t i = 0; i < of.draws.size(); ++i, ++draws) {
      if (there[i].id == here[i].id) {
        ASSERT_NEAR(there[i].logprob, here[i].logprob, 1e-5) << "case " << seed << ", draw " << i;
        continue;
      }
      ++others;
      ASSERT_TRUE(is_border(of, of.draws[i], here[i].id, there[i].id)) << "case " << seed << ", draw " << i;
    }
  }
  EXPECT_GT(draws, 2500u);
  EXPECT_LE(others, 2u);
}

TEST_P(LibrarySampler, DrawsTheSameHoweverManyRowsAreDrawnAtATime) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Case of = random_case(seed);
    const auto together = drawn_on(device(), of), alone = drawn_on(device(), of, 1);
    for (size_t i = 0; i < of.draws.size(); ++i) {
      EXPECT_EQ(alone[i].id, together[i].id) << seed;
      EXPECT_EQ(alone[i].logprob, together[i].logprob) << seed;
    }
  }
}

TEST_P(LibrarySampler, OrdersEqualLogitsByIdAndBothZerosAreEqual) {
  const at::Tensor logits = at::tensor(std::vector<float>{-0.0f, 1, 0, -2, 1, -0.0f, -1e-30f, 0, 3e38f, -3e38f});
  const std::vector<int64_t> order{8, 1, 4, 0, 2, 5, 7, 6, 3, 9};
  for (int64_t count = 1; count <= 10; ++count) {
    const at::Tensor ids = likeliest_ids(logits.unsqueeze(0).to(device()), count).squeeze(0).to(at::kCPU);
    EXPECT_TRUE(ids.equal(at::tensor(order).narrow(0, 0, count))) << count;
  }
}

// Of equal logits all weights are 1, and sums are exact.
TEST_P(LibrarySampler, DrawsTheSameTokenAtABorderThatIsNotRounded) {
  for (const int64_t size : {8, 512, 4096}) {
    Case of{.vocabulary = size, .rows = 1, .logits = std::vector<float>(static_cast<size_t>(size), 3.0f), .texts = {{0}}};
    for (int i = 0; i < 8; ++i) of.draws.push_back({.uniform = i / 8.0});
    for (const SamplingOptions& options :
         {SamplingOptions{}, SamplingOptions{.top_k = size / 2}, SamplingOptions{.top_p = 0.5}, SamplingOptions{.min_p = 1}}) {
      of.options = options;
      const auto here = drawn_by_cpu(of), there = drawn_on(device(), of);
      for (size_t i = 0; i < of.draws.size(); ++i) EXPECT_EQ(there[i].id, here[i].id) << i << " / 8 of " << size;
    }
  }
}

TEST_P(LibrarySampler, DrawsTheLastIdBySharesUpToOne) {
  for (const int64_t size : {1, 2, 255, 256, 257, 512}) {
    Case of{.vocabulary = size, .rows = 1};
    of.logits.assign(static_cast<size_t>(size), -200.0f);  // so unlikely that they have no weight
    of.logits.back() = 20;
    of.texts = {{0}};
    for (const double uniform : {0.0, 0.5, 1 - 1e-16, 1.0}) of.draws.push_back({.uniform = uniform});
    for (const SamplingOptions& options : {SamplingOptions{}, SamplingOptions{.top_p = 0.999}}) {
      of.options = options;
      for (const SampledToken& token : drawn_on(device(), of)) EXPECT_EQ(token.id, size - 1);
    }
  }
}

// What a row has that cannot be drawn from; `bad` is at any place of it.
TEST_P(LibrarySampler, NamesTheFirstSampleWhoseLogitsAreNotFinite) {
  const SamplingOptions all[] = {{},
                                 {.temperature = 0},
                                 {.top_k = 5},
                                 {.top_p = 0.5, .min_p = 0.1},
                                 {.top_k = 5, .repetition_penalty = 1.5, .frequency_penalty = 0.5}};
  for (const SamplingOptions& options : all)
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      Case of{.options = options, .vocabulary = 300, .rows = 4, .logits = std::vector<float>(1200, 1.0f)};
      of.texts.assign(4, {1, 2, 3});
      of.logits[300 * 2 + 277] = of.logits[300 * 3] = bad;
      for (int64_t i = 0; i < 4; ++i) of.draws.push_back({.id = static_cast<uint64_t>(40 + i), .row = i, .uniform = 0.7});
      EXPECT_THAT([&] { drawn_on(device(), of); },
                  ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("sample 42: logits are not finite")));
      of.rows = 2, of.logits.resize(600), of.texts.resize(2), of.draws.resize(2);
      EXPECT_NO_THROW(drawn_on(device(), of));
    }
}

TEST_P(LibrarySampler, APenaltyThatMakesALogitInfiniteIsFoundWhereItCounts) {
  Case of{.options = {.repetition_penalty = 100}, .vocabulary = 3, .rows = 1, .logits = {-3e38f, 1, 2}};
  of.texts = {{0, 1}};
  of.draws = {{.id = 5, .greedy = true, .prompt = of.texts[0]}};
  EXPECT_EQ(drawn_on(device(), of)[0].id, 2);
  of.draws[0].greedy = false;
  EXPECT_THAT([&] { drawn_on(device(), of); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("sample 5: logits are not finite")));
}

INSTANTIATE_TEST_SUITE_P(Devices, LibrarySampler, ::testing::ValuesIn(devices::kNames), devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, LibrarySampler, ::testing::ValuesIn(devices::kFake), devices::PlainName());

// That is_border() does not call everything one: hardly a draw is near the border to the token beside its own.
TEST(LibrarySamplerBorders, AreRare) {
  size_t borders = 0, draws = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Case of = random_case(seed);
    const auto here = drawn_by_cpu(of);
    for (size_t i = 0; i < of.draws.size(); ++i, ++draws)
      borders += is_border(of, of.draws[i], here[i].id, (here[i].id + 1) % of.vocabulary) ? 1 : 0;
  }
  EXPECT_LE(borders, draws / 100);
}

TEST(LibrarySamplerOptions, OutOfRangeAreRefused) {
  EXPECT_THROW(Sampler({.temperature = -1}), UserError);
  EXPECT_THROW(Sampler({.top_p = 0}), UserError);
  EXPECT_THROW(Sampler({.frequency_penalty = INFINITY}), UserError);
}

}  // namespace
}  // namespace sluice::models::portable::sampler_test
