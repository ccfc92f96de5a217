#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <functional>

#include "nodes/objectives/preference/dpo.h"
#include "nodes/objectives/preference/hinge.h"
#include "nodes/objectives/preference/ipo.h"
#include "nodes/objectives/preference/simpo.h"

namespace sluice::nodes::preference_objectives_test {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;
using Vector = std::vector<double>;
using Objective = std::function<PreferenceTerms(const PreferenceInputs&)>;

at::Tensor tensor(const Vector& values) { return at::tensor(values, at::kDouble); }

Vector vector(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// Two pairs: the first is on the right side of the reference, the second on the wrong one.
PreferenceInputs pairs(const Vector& chosen, const Vector& rejected, bool with_reference = true) {
  PreferenceInputs inputs{.chosen = {.policy = tensor(chosen), .reference = {}, .lengths = tensor({4, 10})},
                          .rejected = {.policy = tensor(rejected), .reference = {}, .lengths = tensor({2, 5})}};
  if (!with_reference) return inputs;
  inputs.chosen.reference = tensor({-2.5, -4});
  inputs.rejected.reference = tensor({-2, -6});
  return inputs;
}

const Vector kChosen{-2, -5}, kRejected{-3, -4.5};

void expect_losses(const Objective& objective, const Vector& expected, bool with_reference = true) {
  EXPECT_THAT(vector(objective(pairs(kChosen, kRejected, with_reference)).losses), Pointwise(DoubleNear(1e-9), expected));
}

double loss_sum(const Objective& objective, const Vector& chosen, const Vector& rejected) {
  return objective(pairs(chosen, rejected)).losses.sum().item().toDouble();
}

// Central differences, of each pair's two samples.
void expect_gradient_is_numeric(const Objective& objective) {
  constexpr double kStep = 1e-6;
  PreferenceInputs inputs = pairs(kChosen, kRejected);
  inputs.chosen.policy.requires_grad_(true);
  inputs.rejected.policy.requires_grad_(true);
  objective(inputs).losses.sum().backward();
  const Vector of_chosen = vector(inputs.chosen.policy.grad()), of_rejected = vector(inputs.rejected.policy.grad());
  for (size_t p = 0; p < 2; ++p) {
    Vector up = kChosen, down = kChosen;
    up[p] += kStep, down[p] -= kStep;
    EXPECT_NEAR(of_chosen[p], (loss_sum(objective, up, kRejected) - loss_sum(objective, down, kRejected)) / (2 * kStep), 1e-7);
    up = down = kRejected;
    up[p] += kStep, down[p] -= kStep;
    EXPECT_NEAR(of_rejected[p], (loss_sum(objective, kChosen, up) - loss_sum(objective, kChosen, down)) / (2 * kStep), 1e-7);
  }
}

template <class T, class P>
Objective objective_of(const P& params) {
  return [=](const PreferenceInputs& inputs) { return T(params).compute(inputs); };
}

// The expected losses are what the formulas of TRL (DPOTrainer; CPOTrainer for simpo) give in PyTorch.
TEST(Dpo, LossIsThatOfTrl) {
  expect_losses(objective_of<Dpo>(DpoParams{.beta = 0.5}), {0.3868710061, 1.5019290813});
  expect_losses(objective_of<Dpo>(DpoParams{.beta = 0.5, .label_smoothing = 0.1}), {0.4618710061, 1.3769290813});
  expect_losses(objective_of<Dpo>(DpoParams{.beta = 0.5, .label_smoothing = 0.1, .noise = LabelNoise::kRobust}),
                {0.2931210061, 1.6581790813});
}

TEST(Dpo, RewardIsTheScaledLogRatio) {
  const PreferenceTerms terms = Dpo({.beta = 0.5}).compute(pairs(kChosen, kRejected));
  EXPECT_THAT(vector(terms.chosen_rewards), Pointwise(DoubleNear(1e-12), Vector{0.25, -0.5}));
  EXPECT_THAT(vector(terms.rejected_rewards), Pointwise(DoubleNear(1e-12), Vector{-0.5, 0.75}));
}

TEST(Dpo, GradientIsNumeric) {
  expect_gradient_is_numeric(objective_of<Dpo>(DpoParams{.beta = 0.5}));
  expect_gradient_is_numeric(objective_of<Dpo>(DpoParams{.beta = 0.5, .label_smoothing = 0.1}));
  expect_gradient_is_numeric(objective_of<Dpo>(DpoParams{.label_smoothing = 0.2, .noise = LabelNoise::kRobust}));
}

TEST(Ipo, LossIsThatOfTrl) { expect_losses(objective_of<Ipo>(IpoParams{.beta = 0.5}), {0.140625, 1.96}); }
TEST(Ipo, GradientIsNumeric) { expect_gradient_is_numeric(objective_of<Ipo>(IpoParams{.beta = 0.5})); }

TEST(Simpo, LossIsThatOfTrlAndNeedsNoReference) {
  expect_losses(objective_of<Simpo>(SimpoParams{}), {0.3132616875, 0.7981388694}, /*with_reference=*/false);
}
TEST(Simpo, GradientIsNumeric) { expect_gradient_is_numeric(objective_of<Simpo>(SimpoParams{})); }

TEST(Hinge, LossIsThatOfTrl) { expect_losses(objective_of<Hinge>(HingeParams{.beta = 0.5}), {0.25, 2.25}); }
TEST(Hinge, GradientIsNumeric) { expect_gradient_is_numeric(objective_of<Hinge>(HingeParams{.beta = 0.5})); }

TEST(Hinge, APairThatIsFarEnoughApartTeachesNothing) {
  PreferenceInputs inputs = pairs(kChosen, kRejected);
  inputs.chosen.policy.requires_grad_(true);
  Hinge({.beta = 1}).compute(inputs).losses.sum().backward();
  EXPECT_THAT(vector(inputs.chosen.policy.grad()), Pointwise(DoubleNear(1e-12), Vector{0, -1}));
}

template <class T, class P>
void expect_beta_of_the_iteration() {
  const engine::ScheduledNumber falling({.shape = engine::ScheduleShape::kLinear, .from = 0.9, .to = 0.1, .iterations = 2}, {},
                                        false);
  PreferenceInputs inputs = pairs(kChosen, kRejected);
  inputs.iteration = 1;  // halfway
  const PreferenceTerms scheduled = T(P{.beta = falling}).compute(inputs), constant = T(P{.beta = 0.5}).compute(inputs);
  EXPECT_THAT(vector(scheduled.losses), Pointwise(DoubleNear(1e-12), vector(constant.losses)));
  EXPECT_THAT(vector(scheduled.chosen_rewards), Pointwise(DoubleNear(1e-12), vector(constant.chosen_rewards)));
  EXPECT_THAT(vector(scheduled.rejected_rewards), Pointwise(DoubleNear(1e-12), vector(constant.rejected_rewards)));
}

TEST(PreferenceObjectives, HaveTheBetaOfTheIterationOfTheirPairs) {
  expect_beta_of_the_iteration<Dpo, DpoParams>();
  expect_beta_of_the_iteration<Ipo, IpoParams>();
  expect_beta_of_the_iteration<Simpo, SimpoParams>();
  expect_beta_of_the_iteration<Hinge, HingeParams>();
}

TEST(PreferenceMetrics, AreMeansOverThePairs) {
  const PreferenceInputs inputs = pairs(kChosen, kRejected);
  const auto metrics = preference_metrics(inputs, Dpo({.beta = 0.5}).compute(inputs));
  const std::map<std::string, double> by_name(metrics.begin(), metrics.end());
  EXPECT_DOUBLE_EQ(by_name.at("preference/accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(by_name.at("preference/reward_margin"), -0.25);
  EXPECT_DOUBLE_EQ(by_name.at("preference/chosen_reward_mean"), -0.125);
  EXPECT_DOUBLE_EQ(by_name.at("preference/rejected_reward_mean"), 0.125);
  EXPECT_DOUBLE_EQ(by_name.at("preference/chosen_logprob_mean"), -3.5);
  EXPECT_DOUBLE_EQ(by_name.at("preference/rejected_logprob_mean"), -3.75);
}

}  // namespace
}  // namespace sluice::nodes::preference_objectives_test
