#include "models/layers/feed_forward/sample_routing.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "models/layers/feed_forward/routing.h"

namespace sluice::models::sample_routing_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr ExpertsConfig kExpertsOf{.count = 4, .per_token = 2, .size = 1};

// Two samples, of two tokens and of one.
const std::vector<int64_t> kOffsets{0, 2, 3};
const std::vector<int32_t> kChosen{0, 1, 0, 3, 2, 3};
const std::vector<float> kShares{.5f, .25f, .25f, 0, .4f, .1f, .2f, .3f, .25f, .25f, .25f, .25f};

std::vector<SampleRouting> routings() { return sample_routings(kExpertsOf, kOffsets, kChosen.data(), kShares.data()); }

TEST(SampleRouting, CountsTheTokensOfEachExpertAndSumsTheirShares) {
  const auto samples = routings();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].tokens, 2);
  EXPECT_THAT(samples[0].through, ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(samples[0].shares, Pointwise(DoubleNear(1e-6), {.9, .35, .45, .3}));
  EXPECT_THAT(samples[1].through, ElementsAre(0, 0, 1, 1));
}

TEST(SampleRouting, TheEntropyIsThatOfTheShares) {
  const auto samples = routings();
  const auto of = [](double p) { return -p * std::log(p); };
  EXPECT_NEAR(samples[0].entropy, of(.5) + 2 * of(.25) + of(.4) + of(.1) + of(.2) + of(.3), 1e-6);
  EXPECT_NEAR(samples[1].entropy, std::log(4), 1e-6);
}

// E / (K T^2) sum of tokens times shares: 4 / (2 4) (2 0.9 + 1 0.35 + 1 0.3).
TEST(BalanceLoss, IsTheMeanShareOfTheExpertsByTheirTokens) { EXPECT_NEAR(balance_loss(kExpertsOf, routings()[0]), 1.225, 1e-6); }

TEST(BalanceLoss, IsOneWhereTokensAreSpreadEvenlyAndAtMostTheExpertsByThoseOfAToken) {
  EXPECT_NEAR(balance_loss(kExpertsOf, {.tokens = 4, .through = {2, 2, 2, 2}, .shares = {1, 1, 1, 1}}), 1, 1e-12);
  EXPECT_NEAR(balance_loss(kExpertsOf, {.tokens = 4, .through = {4, 4, 0, 0}, .shares = {3, 1, 0, 0}}), 2, 1e-12);
  EXPECT_EQ(balance_loss(kExpertsOf, {.tokens = 0, .through = {0, 0, 0, 0}, .shares = {0, 0, 0, 0}}), 0);
}

// Some lines of transformers' load_balancing_loss_func, of the logits of one layer.
at::Tensor loss_of_transformers(const at::Tensor& logits, int64_t per_token) {
  const int64_t experts = logits.size(1);
  const at::Tensor shares = at::softmax(logits, -1);
  const at::Tensor mask = at::one_hot(std::get<1>(at::topk(shares, per_token, -1)), experts);  // [T,K,E]
  return mask.to(logits.scalar_type()).mean(0).mul(shares.mean(0).unsqueeze(0)).sum().mul(experts);
}

struct RoutedSample {
  at::Tensor shares;
  std::vector<int32_t> chosen;
  std::vector<float> weights;
  RouterRows rows;

  RoutedSample(const ExpertsConfig& experts, const at::Tensor& logits)
      : shares(logits.detach().to(at::kFloat).clone()),
        chosen(static_cast<size_t>(logits.size(0) * experts.per_token)),
        weights(chosen.size()),
        rows{shares.mutable_data_ptr<float>(), chosen.data(), weights.data()} {
    route(experts, logits.size(0), rows);
  }

  SampleRouting of(const ExpertsConfig& experts) const {
    return sample_routings(experts, std::vector<int64_t>{0, shares.size(0)}, rows.chosen, rows.logits)[0];
  }
};

TEST(BalanceLoss, IsThatOfTransformersByTheExpertsOfAToken) {
  for (const bool normalised : {false, true}) {
    const ExpertsConfig experts{.count = 7, .per_token = 3, .size = 1, .normalised = normalised};
    const at::Tensor logits = at::randn({40, 7}, at::kDouble);
    EXPECT_NEAR(3 * balance_loss(experts, RoutedSample(experts, logits).of(experts)),
                loss_of_transformers(logits, 3).item<double>(), 1e-6);
  }
}

// With nothing that goes through the weights, or beside it.
TEST(BalanceLoss, HasTheGradientOfAutograd) {
  for (const bool normalised : {false, true}) {
    const ExpertsConfig experts{.count = 7, .per_token = 3, .size = 1, .normalised = normalised};
    const at::Tensor logits = at::randn({40, 7}, at::kDouble).set_requires_grad(true);
    loss_of_transformers(logits, 3).backward();
    RoutedSample sample(experts, logits);
    const std::vector<float> slopes = balance_slopes(experts, sample.of(experts), 3), nothing(sample.weights.size());
    route_backward(experts, 40, sample.rows, nothing.data(), slopes.data(), sample.rows.logits);
    EXPECT_LT((sample.shares - logits.grad()).abs().max().item<double>(), 1e-7);
    EXPECT_GT(logits.grad().abs().max().item<double>(), 1e-3);
  }
}

TEST(BalanceLoss, HasTheGradientOfDifferences) {
  const ExpertsConfig experts{.count = 5, .per_token = 2, .size = 1};
  // Half apart at least: where a small step changes which experts are chosen there is no slope.
  const at::Tensor logits = at::rand({6, 5}).argsort().to(at::kFloat) + at::rand({6, 5}).mul(.5);
  RoutedSample sample(experts, logits);
  const std::vector<float> slopes = balance_slopes(experts, sample.of(experts), 1), nothing(sample.weights.size());
  route_backward(experts, 6, sample.rows, nothing.data(), slopes.data(), sample.rows.logits);
  for (int64_t token = 0; token < 6; ++token) {
    for (int64_t expert = 0; expert < 5; ++expert) {
      const auto loss = [&](double step) {
        const at::Tensor moved = logits.clone();
        moved[token][expert] += step;
        return balance_loss(experts, RoutedSample(experts, moved).of(experts));
      };
      EXPECT_NEAR(sample.shares[token][expert].item<double>(), (loss(.005) - loss(-.005)) / .01, 2e-4);
    }
  }
}

}  // namespace
}  // namespace sluice::models::sample_routing_test
