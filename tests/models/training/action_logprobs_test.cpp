#include "models/training/action_logprobs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr int64_t kActions = 11, kHidden = 6, kVocabulary = 9;

struct Inputs {
  at::Tensor hidden = at::randn({kActions, kHidden}, at::kDouble).set_requires_grad(true);
  at::Tensor head = at::randn({kVocabulary, kHidden}, at::kDouble).set_requires_grad(true);
  at::Tensor targets = at::randint(kVocabulary, {kActions}, at::kLong);
};

// With the logits of all actions at once.
at::Tensor plain_logprobs(const at::Tensor& hidden, const at::Tensor& head, double temperature) {
  return at::log_softmax(at::matmul(hidden, head.t()) / temperature, 1);  // [A,V]
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

// Chunks that divide the actions, that leave a rest, and that hold all of them.
class ActionLogprobsChunks : public testing::TestWithParam<int64_t> {};

TEST_P(ActionLogprobsChunks, ValueAndGradientsMatchPlainLogSoftmax) {
  const Inputs in;
  const at::Tensor weights = at::randn({kActions}, at::kDouble);
  const at::Tensor result = action_logprobs(in.hidden, in.head, in.targets, 0.7, GetParam());
  result.backward(weights);
  const at::Tensor grad_hidden = in.hidden.grad().clone(), grad_head = in.head.grad().clone();
  in.hidden.mutable_grad().reset();
  in.head.mutable_grad().reset();

  const at::Tensor expected = plain_logprobs(in.hidden, in.head, 0.7).gather(1, in.targets.unsqueeze(1)).squeeze(1);
  expected.backward(weights);
  EXPECT_LT(largest_difference(result, expected), 1e-12);
  EXPECT_LT(largest_difference(grad_hidden, in.hidden.grad()), 1e-12);
  EXPECT_LT(largest_difference(grad_head, in.head.grad()), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ActionLogprobsChunks, testing::Values(1, 4, 11, 1000));

// The cap comes first, the temperature behind it.
TEST_P(ActionLogprobsChunks, ValueEntropyAndGradientsOfCappedLogitsMatchPlainLogSoftmax) {
  for (const double temperature : {1.0, 0.7}) {
    const Inputs in;
    const at::Tensor weights = at::randn({kActions}, at::kDouble), entropy_weights = at::randn({kActions}, at::kDouble);
    const ActionLogprobs result = action_logprobs_and_entropy(in.hidden, in.head, in.targets, temperature, GetParam(), 1.5);
    ((result.logprobs * weights).sum() + (result.entropy * entropy_weights).sum()).backward();
    const at::Tensor grad_hidden = in.hidden.grad().clone(), grad_head = in.head.grad().clone();
    in.hidden.mutable_grad().reset();
    in.head.mutable_grad().reset();

    const at::Tensor logits = (at::matmul(in.hidden, in.head.t()) / 1.5).tanh() * 1.5;
    const at::Tensor all = at::log_softmax(logits / temperature, 1), expected = all.gather(1, in.targets.unsqueeze(1)).squeeze(1);
    const at::Tensor entropy = -(all.exp() * all).sum(1);
    ((expected * weights).sum() + (entropy * entropy_weights).sum()).backward();
    EXPECT_LT(largest_difference(result.logprobs, expected), 1e-12);
    EXPECT_LT(largest_difference(result.entropy, entropy), 1e-12);
    EXPECT_LT(largest_difference(grad_hidden, in.hidden.grad()), 1e-12);
    EXPECT_LT(largest_difference(grad_head, in.head.grad()), 1e-12);
  }
}

TEST_P(ActionLogprobsChunks, EntropyAloneHasItsGradient) {
  const Inputs in;
  action_logprobs_and_entropy(in.hidden, in.head, in.targets, 0.7, GetParam()).entropy.sum().backward();
  const at::Tensor grad_hidden = in.hidden.grad().clone();
  in.hidden.mutable_grad().reset();
  const at::Tensor all = plain_logprobs(in.hidden, in.head, 0.7);
  (-(all.exp() * all).sum()).backward();
  EXPECT_LT(largest_difference(grad_hidden, in.hidden.grad()), 1e-12);
}

TEST(ActionLogprobs, GradientsMatchFiniteDifferences) {
  const Inputs in;
  action_logprobs(in.hidden, in.head, in.targets, 1.3, 4).sum().backward();
  const auto slope = [&](const at::Tensor& x, int64_t i) {
    constexpr double kStep = 1e-6;
    const at::Tensor flat = x.detach().view(-1);
    const auto moved = [&](double step) {
      flat[i] += step;
      const double sum = action_logprobs(in.hidden, in.head, in.targets, 1.3, 4).sum().item<double>();
      flat[i] -= step;
      return sum;
    };
    return (moved(kStep) - moved(-kStep)) / (2 * kStep);
  };
  for (int64_t i = 0; i < in.hidden.numel(); i += 5)
    EXPECT_NEAR(slope(in.hidden, i), in.hidden.grad().view(-1)[i].item<double>(), 1e-7);
  for (int64_t i = 0; i < in.head.numel(); i += 5)
    EXPECT_NEAR(slope(in.head, i), in.head.grad().view(-1)[i].item<double>(), 1e-7);
}

TEST(ActionLogprobs, EntropyIsThatOfTheWholeDistributionAndCarriesNoGradient) {
  const Inputs in;
  const ActionLogprobs result = action_logprobs_and_entropy(in.hidden, in.head, in.targets, 0.7, 4);
  const at::Tensor all = plain_logprobs(in.hidden, in.head, 0.7);
  EXPECT_LT(largest_difference(result.entropy, -(all.exp() * all).sum(1)), 1e-12);
  EXPECT_TRUE(result.logprobs.requires_grad());
}

TEST(ActionLogprobs, FrozenHeadGetsNoGradient) {
  const Inputs in;
  const at::Tensor frozen = in.head.detach();
  action_logprobs(in.hidden, frozen, in.targets, 1.0, 4).sum().backward();
  EXPECT_TRUE(in.hidden.grad().defined());
  EXPECT_FALSE(frozen.grad().defined());
}

TEST(ActionLogprobs, NoActionsAreNoProblem) {
  const Inputs in;
  const at::Tensor none = action_logprobs(in.hidden.narrow(0, 0, 0), in.head, in.targets.narrow(0, 0, 0), 1.0, 4);
  none.sum().backward();
  EXPECT_EQ(none.numel(), 0);
  EXPECT_EQ(in.head.grad().abs().sum().item<double>(), 0.0);
}

TEST(ActionLogprobs, OfANarrowHeadComeFromLogitsOfItsDtype) {
  const at::Tensor hidden = at::randn({kActions, kHidden}), head = at::randn({kVocabulary, kHidden}).to(at::kBFloat16);
  const at::Tensor targets = at::randint(kVocabulary, {kActions}, at::kLong);
  const at::Tensor logits = at::linear(hidden.to(at::kBFloat16), head).to(at::kFloat) / 0.7;
  const at::Tensor expected = at::log_softmax(logits, 1).gather(1, targets.unsqueeze(1)).squeeze(1);
  EXPECT_TRUE(at::allclose(action_logprobs(hidden, head, targets, 0.7, 4), expected, 1e-6, 1e-6));
}

TEST(ActionLogprobs, MismatchedShapesAreABug) {
  const Inputs in;
  EXPECT_THROW(action_logprobs(in.hidden, in.head.narrow(1, 0, 3), in.targets, 1.0, 4), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets.narrow(0, 0, 3), 1.0, 4), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets, 0.0, 4), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets, 1.0, 4, -1.0), InternalError);
}

}  // namespace
}  // namespace sluice::models
