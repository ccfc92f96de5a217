// The surrogate of each policy objective, on one sample.
#include <gmock/gmock.h>

#include <cmath>

#include "nodes/objectives/cispo.h"
#include "nodes/objectives/dppo.h"
#include "nodes/objectives/gmpo.h"
#include "nodes/objectives/gspo.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/sapo.h"
#include "nodes/objectives/vespo.h"
#include "tests/nodes/objectives/objective_support.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::surrogates_test {
namespace {

using testing::expect_gradient_is_numeric;
using testing::expect_near;
using testing::gradient;
using testing::Loss;
using testing::loss_of;
using testing::metric;
using testing::one_sample;
using testing::tensor;
using testing::Vector;

template <class Objective, class Params>
Loss loss(const Params& params, const Vector& old_logprobs, const Vector& advantages) {
  return [=](const at::Tensor& logprobs) { return Objective(params).compute(one_sample(logprobs, old_logprobs, advantages)); };
}

PpoClipParams clips(double low, double high, double dual = 0) {
  PpoClipParams params;
  params.clip_low = low, params.clip_high = high, params.dual_clip = dual;
  return params;
}

template <class Objective, class Params>
void expect_agrees(const char* id, Params params, double dual = 0) {
  const auto entry = reference_case(id);
  if (!entry) GTEST_SKIP() << "no test data";
  params.clip_low = (*entry)["clip"][0].get<double>(), params.clip_high = (*entry)["clip"][1].get<double>();
  if constexpr (requires { params.dual_clip; }) params.dual_clip = dual;
  const auto result = loss<Objective>(params, (*entry)["prev"], (*entry)["adv"])(tensor((*entry)["curr"]));
  const double expected = (*entry)["expect"]["loss"];
  EXPECT_NEAR(loss_of(result), expected, 1e-3 * std::abs(expected));
}

TEST(PpoClip, AgreesWithNemoRl) { expect_agrees<PpoClip>("ppo_clip", PpoClipParams{}); }
TEST(PpoClip, DualClipAgreesWithNemoRl) { expect_agrees<PpoClip>("ppo_dual_clip", PpoClipParams{}, 3.0); }
TEST(Gspo, AgreesWithNemoRl) { expect_agrees<Gspo>("gspo", GspoParams{}); }

// log 0.5, log 1.1, log 2 for both signs of the advantage: only moves that already went too far the right way are cut off.
TEST(PpoClip, GradientIsThatOfTheClippedSurrogate) {
  const Vector logprobs{std::log(0.5), std::log(1.1), std::log(2), std::log(0.5), std::log(1.1), std::log(2)};
  const Vector advantages{1, 1, 1, -1, -1, -1};
  const auto clipped = loss<PpoClip>(clips(0.2, 0.4), Vector(6, 0.0), advantages);
  expect_near(gradient(clipped, logprobs), {-0.5, -1.1, 0, 0, 1.1, 2});
  expect_gradient_is_numeric(clipped, logprobs);
  expect_gradient_is_numeric(loss<PpoClip>(clips(0.2, 0.2, 1.5), Vector(6, 0.0), advantages), logprobs);
}

TEST(PpoClip, DualClipIsThatOfTheIterationOfTheSamples) {
  PpoClipParams params;
  params.dual_clip = {{.shape = engine::ScheduleShape::kLinear, .from = 4, .to = 2, .iterations = 2}, {}, false};
  ObjectiveInputs inputs = one_sample(tensor({std::log(10)}), {0}, {-1});
  for (const auto& [iteration, bound] : {std::pair(0, 4.0), std::pair(1, 3.0), std::pair(2, 2.0)}) {
    inputs.iteration = iteration;
    EXPECT_NEAR(PpoClip(params).compute(inputs).loss_sum.item().toDouble(), bound, 1e-12);
  }
}

TEST(PpoClip, UpperAndLowerBoundAreSeparate) {
  const Vector logprobs{std::log(3), std::log(0.2), 0};
  const auto result = loss<PpoClip>(clips(0.1, 0.5), {0, 0, 0}, {1, -1, 1})(tensor(logprobs));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), -1.5 + 0.9 - 1, 1e-12);
  EXPECT_NEAR(metric(result, "policy/clip_fraction_high"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(metric(result, "policy/clip_fraction_low"), 1.0 / 3, 1e-12);
  EXPECT_NEAR(metric(result, "policy/ratio_max"), 3, 1e-12);
  EXPECT_NEAR(metric(result, "policy/ratio_mean"), 4.2 / 3, 1e-12);
}

TEST(PpoClip, NoActionsLoseNothing) {
  const auto result = loss<PpoClip>(PpoClipParams{}, {}, {})(tensor({}).requires_grad_(true));
  EXPECT_EQ(result.count, 0);
  EXPECT_EQ(result.loss_sum.item().toDouble(), 0);
}

TEST(PpoClip, HugeRatioHasAFiniteGradient) {
  at::Tensor logprobs = at::tensor({0.0f, 0.0f}).requires_grad_(true);
  ObjectiveInputs inputs = one_sample(logprobs, {-500, -500}, {1, -1});
  inputs.old_logprobs = inputs.old_logprobs.to(at::kFloat), inputs.advantages = inputs.advantages.to(at::kFloat);
  PpoClip(PpoClipParams{}).compute(inputs).loss_sum.backward();
  EXPECT_TRUE(logprobs.grad().isfinite().all().item().toBool());
}

TEST(PpoClip, NanIsNotHidden) {
  EXPECT_TRUE(std::isnan(loss_of(loss<PpoClip>(PpoClipParams{}, {0, 0}, {1, std::nan("")})(tensor({0, 0})))));
}

TEST(Reinforce, GradientIsMinusTheAdvantage) {
  const Loss reinforce = loss<Reinforce>(ReinforceParams{}, {0, 0}, {2, -3});
  EXPECT_NEAR(reinforce(tensor({-1, -2})).loss_sum.item().toDouble(), 2 - 6, 1e-12);
  expect_near(gradient(reinforce, {-1, -2}), {-2, 3});
}

// The ratio of the sample is exp of the mean log ratio, so every action gets an equal part of the gradient.
TEST(Gspo, GradientIsSharedByTheActionsOfTheSample) {
  GspoParams params;
  params.aggregation = Aggregation::kTokenMean;
  const auto gspo = loss<Gspo>(params, {0, 0}, {2, 2});
  const double ratio = std::exp((0.1 - 0.05) / 2);
  expect_near(gradient(gspo, {0.1, -0.05}), {-2 * ratio, -2 * ratio});
  expect_gradient_is_numeric(gspo, {0.1, -0.05});
}

TEST(Gspo, BeyondTheClipTheWholeSampleHasNoGradient) {
  GspoParams params;
  params.clip_low = 3e-4, params.clip_high = 4e-4;
  expect_near(gradient(loss<Gspo>(params, {0, 0}, {1, 1}), {0.01, 0}), {0, 0});
  const auto result = loss<Gspo>(params, {0, 0}, {1, 1})(tensor({0.01, 0}));
  EXPECT_EQ(metric(result, "policy/clip_fraction_high"), 1);
  EXPECT_NEAR(loss_of(result), -1.0004, 1e-12);
}

TEST(Cispo, AgreesWithSlime) {
  const auto entry = reference_case("cispo_1");
  if (!entry) GTEST_SKIP() << "no test data";
  CispoParams params;
  params.clip_low = (*entry)["eps"][0].get<double>(), params.clip_high = (*entry)["eps"][1].get<double>();
  const Vector logprobs = (*entry)["logp"], ratios = (*entry)["ratio"], advantages = (*entry)["adv"];
  const Vector clamped = (*entry)["expect"]["clamped"];
  Vector old_logprobs, expected_gradient;
  double expected = 0;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    old_logprobs.push_back(logprobs[i] - std::log(ratios[i]));
    expected_gradient.push_back(-clamped[i] * advantages[i]);
    expected += expected_gradient.back() * logprobs[i];
  }
  const auto cispo = loss<Cispo>(params, old_logprobs, advantages);
  const auto result = cispo(tensor(logprobs));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), expected, 1e-6);
  expect_near(gradient(cispo, logprobs), expected_gradient, 1e-6);
  EXPECT_EQ(metric(result, "policy/clip_fraction_low") + metric(result, "policy/clip_fraction_high"), 0.5);
}

// f(r) = 4 / tau sigmoid(tau (r - 1)): f(1) = 2 / tau and f'(1) = 1.
TEST(Sapo, GateIsSoftAndDiffersByTheSignOfTheAdvantage) {
  SapoParams params;
  params.tau_positive = 1.0, params.tau_negative = 2.0;
  const auto sapo = loss<Sapo>(params, {0, 0, 0, 0}, {1, -1, 1, -1});
  const double sigmoid1 = 1 / (1 + std::exp(-1.0)), sigmoid2 = 1 / (1 + std::exp(-2.0));
  const auto result = sapo(tensor({0, 0, std::log(2), std::log(2)}));
  EXPECT_NEAR(result.loss_sum.item().toDouble() * 4, -2 + 1 - 4 * sigmoid1 + 2 * sigmoid2, 1e-12);  // mean of 4 actions
  const Vector at_one = gradient(sapo, {0, 0, 0, 0});
  expect_near(at_one, {-0.25, 0.25, -0.25, 0.25});
  expect_gradient_is_numeric(sapo, {0, 0.3, -0.5, 0.7});
}

// Log ratios 1 and 0: the first is cut at 0.4 where the advantage leads up, and pays in full where it leads down.
TEST(Gmpo, ActionsAreClippedBeforeTheMean) {
  const auto rising = loss<Gmpo>(GmpoParams{}, {-1, -1}, {2, 2}), falling = loss<Gmpo>(GmpoParams{}, {-1, -1}, {-2, -2});
  EXPECT_NEAR(loss_of(rising(tensor({0, -1}))), -2 * std::exp(0.2), 1e-12);
  expect_near(gradient(rising, {0, -1}), {0, -std::exp(0.2)});
  EXPECT_NEAR(loss_of(falling(tensor({0, -1}))), 2 * std::exp(0.5), 1e-12);
  EXPECT_EQ(metric(rising(tensor({0, -1})), "policy/clip_fraction_high"), 0.5);
  EXPECT_EQ(metric(falling(tensor({-3, -1})), "policy/clip_fraction_low"), 0.5);
}

DppoParams dppo(Divergence divergence, double low, double high) {
  DppoParams params;
  params.divergence = divergence, params.clip_low = low, params.clip_high = high;
  return params;
}

// From 0.001 to 0.1, a ratio of 100, and from 0.9 to 0.6: the rare token pays, the likely one is cut off.
TEST(Dppo, RatiosOfRareTokensMayBeLargeAndLikelyTokensMayNotMoveFar) {
  const Vector old{std::log(0.001), std::log(0.9)}, now{std::log(0.1), std::log(0.6)};
  const auto tv = loss<Dppo>(dppo(Divergence::kTv, 0.15, 0.15), old, {1, -1});
  expect_near(gradient(tv, now), {-100, 0}, 1e-9);
  EXPECT_NEAR(metric(tv(tensor(now)), "policy/divergence_max"), 0.3, 1e-12);
  EXPECT_EQ(metric(tv(tensor(now)), "policy/clip_fraction_low"), 0.5);
  expect_near(gradient(loss<Dppo>(dppo(Divergence::kTv, 0.31, 0.05), old, {1, -1}), now), {0, 2.0 / 3});
}

TEST(Dppo, DivergenceIsThatOfTwoOutcomes) {
  const auto kl = loss<Dppo>(dppo(Divergence::kKl, 0.05, 0.05), {std::log(0.9)}, {-1})(tensor({std::log(0.6)}));
  EXPECT_NEAR(metric(kl, "policy/divergence_mean"), 0.9 * std::log(0.9 / 0.6) + 0.1 * std::log(0.1 / 0.4), 1e-7);
}

// What comes back into the region, or leaves it against its advantage, has its full gradient.
TEST(Dppo, WayBackIsOpen) {
  const Vector old{std::log(0.5), std::log(0.5)}, now{std::log(0.9), std::log(0.1)};
  expect_near(gradient(loss<Dppo>(dppo(Divergence::kTv, 0.1, 0.1), old, {-1, 1}), now), {1.8, -0.2});
}

TEST(Dppo, CertainTokensHaveAFiniteDivergence) {
  for (const Divergence divergence : {Divergence::kTv, Divergence::kKl}) {
    at::Tensor logprobs = at::tensor({0.0f, -40.0f}).requires_grad_(true);
    ObjectiveInputs inputs = one_sample(logprobs, {-40, 0}, {1, -1});
    inputs.old_logprobs = inputs.old_logprobs.to(at::kFloat), inputs.advantages = inputs.advantages.to(at::kFloat);
    const ObjectiveResult result = Dppo(dppo(divergence, 0.1, 0.1)).compute(inputs);
    result.loss_sum.backward();
    EXPECT_TRUE(logprobs.grad().isfinite().all().item().toBool());
    EXPECT_TRUE(std::isfinite(metric(result, "policy/divergence_max")));
  }
}

// The ratio is that of the sample, exp(0.5 - 0.2), and phi(w) = w^2 exp(3 (1 - w)).
TEST(Vespo, KernelIsOfTheRatioOfTheSample) {
  const auto vespo = loss<Vespo>(VespoParams{}, {-1.5, -1}, {2, 2});
  const double w = std::exp(0.3), kernel = w * w * std::exp(3 * (1 - w));
  const auto result = vespo(tensor({-1, -1.2}));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), -kernel * 2 * (-1 - 1.2), 1e-12);
  EXPECT_NEAR(metric(result, "policy/kernel_mean"), kernel, 1e-12);
  expect_near(gradient(vespo, {-1, -1.2}), {-2 * kernel, -2 * kernel});
}

TEST(Vespo, FarSamplesTeachNothing) {
  for (const double far : {-500.0, 500.0}) {
    for (const double advantage : {1.0, -1.0}) {
      at::Tensor logprobs = at::tensor({0.0f}).requires_grad_(true);
      ObjectiveInputs inputs = one_sample(logprobs, {far}, {advantage});
      inputs.old_logprobs = inputs.old_logprobs.to(at::kFloat), inputs.advantages = inputs.advantages.to(at::kFloat);
      Vespo(VespoParams{}).compute(inputs).loss_sum.backward();
      EXPECT_EQ(logprobs.grad().item().toDouble(), 0);
    }
  }
}

}  // namespace
}  // namespace sluice::nodes::surrogates_test
