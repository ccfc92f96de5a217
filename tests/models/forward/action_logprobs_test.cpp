#include "models/forward/action_logprobs.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/softmax_kernels.h"
#include "models/layers/operand.h"
#include "models/memory/tensor_memory.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/tensors.h"

namespace sluice::models::action_logprobs_test {
namespace {

// More actions than one block of logits has, and more tokens.
constexpr int64_t kActions = kLogitActions + 11, kHidden = 6, kVocabulary = kLogitTokens + 9;

struct Inputs {
  at::Tensor hidden = at::randn({kActions, kHidden}).set_requires_grad(true);
  at::Tensor head = at::randn({kVocabulary, kHidden}).set_requires_grad(true);
  at::Tensor targets = at::randint(kVocabulary, {kActions}, at::kLong);

  // The same numbers, rounded to the precision first, in double with gradients of their own.
  Inputs exact(Precision precision = Precision::kFloat32) const {
    const auto wide = [&](const at::Tensor& x) {
      return to_operand(x.detach(), precision).to(at::kDouble).set_requires_grad(true);
    };
    return {wide(hidden), wide(head), targets};
  }
};

// With the logits of all actions at once.
at::Tensor plain_logprobs(const Inputs& in, const LogprobOptions& options) {
  at::Tensor logits = at::matmul(in.hidden, in.head.t());
  if (options.softcap != 0) logits = (logits / options.softcap).tanh() * options.softcap;
  return at::log_softmax(logits / options.temperature, 1);  // [A,V]
}

at::Tensor chosen(const at::Tensor& all, const at::Tensor& targets) { return all.gather(1, targets.unsqueeze(1)).squeeze(1); }

struct Case {
  const char* name;
  LogprobOptions options;
};

class ActionLogprobsOptions : public ::testing::TestWithParam<Case> {
 protected:
  LogprobOptions options_ = GetParam().options;
  bool rounds_ = options_.precision == Precision::kBfloat16;
};

TEST_P(ActionLogprobsOptions, ValueEntropyAndGradientsMatchPlainLogSoftmax) {
  const Inputs in, exact = in.exact(options_.precision);
  const at::Tensor weights = at::randn({kActions}), entropy_weights = at::randn({kActions});
  const ActionLogprobs result = action_logprobs_and_entropy(in.hidden, in.head, in.targets, options_);
  ((result.logprobs * weights).sum() + (result.entropy * entropy_weights).sum()).backward();
  const at::Tensor all = plain_logprobs(exact, options_), expected = chosen(all, exact.targets);
  const at::Tensor entropy = -(all.exp() * all).sum(1);
  ((expected * weights).sum() + (entropy * entropy_weights).sum()).backward();
  EXPECT_LT(largest_difference(result.logprobs, expected), 2e-5);
  EXPECT_LT(largest_difference(result.entropy, entropy), 2e-5);
  const double tolerance = rounds_ ? 1e-2 : 1e-5;  // gradients of logits are rounded, too
  EXPECT_LT(relative_distance(in.hidden.grad(), exact.hidden.grad()), tolerance);
  EXPECT_LT(relative_distance(in.head.grad(), exact.head.grad()), tolerance);
}

TEST_P(ActionLogprobsOptions, EachAloneHasItsGradient) {
  const Inputs in, exact = in.exact(options_.precision);
  const double tolerance = rounds_ ? 1e-2 : 1e-5;
  const at::Tensor all = plain_logprobs(exact, options_);
  action_logprobs(in.hidden, in.head, in.targets, options_).sum().backward();
  chosen(all, exact.targets).sum().backward({}, /*keep_graph=*/true);
  EXPECT_LT(relative_distance(in.hidden.grad(), exact.hidden.grad()), tolerance);
  for (const at::Tensor* x : {&in.hidden, &exact.hidden}) x->mutable_grad().reset();
  action_logprobs_and_entropy(in.hidden, in.head, in.targets, options_).entropy.sum().backward();
  (-(all.exp() * all).sum()).backward();
  EXPECT_LT(relative_distance(in.hidden.grad(), exact.hidden.grad()), tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    All, ActionLogprobsOptions,
    ::testing::Values(Case{"Plain", {}}, Case{"Temperature", {.temperature = 0.7}}, Case{"Capped", {.softcap = 1.5}},
                      Case{"CappedWithATemperature", {.temperature = 0.7, .softcap = 1.5}},
                      Case{"Bfloat16", {.precision = Precision::kBfloat16}},
                      Case{"CappedInBfloat16", {.temperature = 1.3, .softcap = 2.0, .precision = Precision::kBfloat16}},
                      Case{"CappedKeepingNone", {.softcap = 1.5, .kept_logits = 0}},
                      Case{"CappedKeepingSome", {.softcap = 1.5, .kept_logits = 100 * kVocabulary + 7}}),
    [](const auto& info) { return info.param.name; });

// An action's result does not depend on those beside it, nor on the threads.
TEST(ActionLogprobs, AnyBatchAndAnyNumberOfThreadsGiveTheSameBits) {
  const at::NoGradGuard no_gradient;
  const Inputs in;
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const auto logprobs = [&](int threads, int64_t first, int64_t count) {
      set_loop_threads(threads);
      return action_logprobs(in.hidden.narrow(0, first, count), in.head, in.targets.narrow(0, first, count),
                             {.precision = precision});
    };
    const int64_t before = loop_threads();
    const at::Tensor all = logprobs(1, 0, kActions), split = logprobs(3, 0, kActions), some = logprobs(1, 17, 3);
    set_loop_threads(before);
    EXPECT_TRUE(all.equal(split));
    EXPECT_TRUE(all.narrow(0, 17, 3).equal(some));
  }
}

// What a forward keeps saves time alone.
TEST(ActionLogprobs, KeptLogitsAndThoseMadeAgainGiveTheSameBits) {
  const Inputs in;
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const double softcap : {0.0, 1.5}) {
      const auto gradients = [&](int64_t kept) {
        const Inputs own{in.hidden.detach().clone().set_requires_grad(true), in.head.detach().clone().set_requires_grad(true),
                         in.targets};
        const LogprobOptions options{.temperature = 0.7, .softcap = softcap, .precision = precision, .kept_logits = kept};
        action_logprobs(own.hidden, own.head, own.targets, options).sum().backward();
        return std::pair(own.hidden.grad(), own.head.grad());
      };
      const auto [hidden, head] = gradients(/*kept=*/0);
      for (const int64_t kept : {kLogitActions * kVocabulary, kActions * kVocabulary}) {
        const auto [hidden_of_kept, head_of_kept] = gradients(kept);
        EXPECT_TRUE(hidden.equal(hidden_of_kept));
        EXPECT_TRUE(head.equal(head_of_kept));
      }
    }
  }
}

TEST(ActionLogprobs, GradientsMatchFiniteDifferences) {
  const Inputs in;
  const at::Tensor weights = at::randn({kActions});
  const LogprobOptions options{.temperature = 1.3};
  const auto loss = [&](const at::Tensor& hidden, const at::Tensor& head) {
    return (action_logprobs(hidden, head, in.targets, options).to(at::kDouble) * weights).sum();
  };
  loss(in.hidden, in.head).backward();
  const at::NoGradGuard no_gradient;
  const auto slope = [&](const at::Tensor& along_hidden, const at::Tensor& along_head) {
    constexpr double kStep = 1e-2;
    const auto moved = [&](double step) {
      return loss(in.hidden + along_hidden * step, in.head + along_head * step).item<double>();
    };
    return (moved(kStep) - moved(-kStep)) / (2 * kStep);
  };
  const at::Tensor along_hidden = at::randn(in.hidden.sizes()), along_head = at::randn(in.head.sizes());
  const double of_hidden = (in.hidden.grad() * along_hidden).sum().item<double>();
  const double of_head = (in.head.grad() * along_head).sum().item<double>();
  EXPECT_NEAR(slope(along_hidden, along_head * 0.0), of_hidden, 1e-2 + 2e-3 * std::abs(of_hidden));
  EXPECT_NEAR(slope(along_hidden * 0.0, along_head), of_head, 1e-2 + 2e-3 * std::abs(of_head));
}

TEST(ActionLogprobs, LargeLogitsDoNotOverflow) {
  const Inputs in, exact = in.exact();
  const LogprobOptions cold{.temperature = 1e-3};
  const at::Tensor result = action_logprobs(in.hidden, in.head, in.targets, cold);
  const at::Tensor expected = chosen(plain_logprobs(exact, cold), exact.targets);
  EXPECT_LT(relative_distance(result.detach(), expected.detach()), 1e-5);
}

TEST(ActionLogprobs, FrozenHeadGetsNoGradient) {
  const Inputs in;
  const at::Tensor frozen = in.head.detach();
  action_logprobs(in.hidden, frozen, in.targets).sum().backward();
  EXPECT_TRUE(in.hidden.grad().defined());
  EXPECT_FALSE(frozen.grad().defined());
}

TEST(ActionLogprobs, OfFrozenStatesTrainTheHeadAlone) {
  const Inputs in;
  const at::Tensor frozen = in.hidden.detach();
  action_logprobs(frozen, in.head, in.targets).sum().backward();
  EXPECT_FALSE(frozen.grad().defined());
  EXPECT_GT(in.head.grad().abs().sum().item<float>(), 0.0f);
}

// What the logits of all actions would take: 8192 x 8192 floats.
TEST(ActionLogprobs, TakeAFiftiethOfTheLogitsAtMostBesideThoseThatAreKept) {
  const at::Tensor hidden = at::randn({8192, 16}).set_requires_grad(true), head = at::randn({8192, 16}).set_requires_grad(true);
  const at::Tensor targets = at::randint(8192, {8192}, at::kLong);
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    for (const int64_t kept : {int64_t{0}, kKeptLogits}) {
      TensorMemory memory;
      std::thread([&] {
        memory.watch_this_thread();
        action_logprobs(hidden, head, targets, {.precision = precision, .kept_logits = kept}).sum().backward();
      }).join();
      EXPECT_LT(memory.take_peak(), 8192 * 8192 * 4 / 50 + kept * 4);
    }
  }
}

TEST(ActionLogprobs, NoActionsAreNoProblem) {
  const Inputs in;
  const at::Tensor none = action_logprobs(in.hidden.narrow(0, 0, 0), in.head, in.targets.narrow(0, 0, 0));
  none.sum().backward();
  EXPECT_EQ(none.numel(), 0);
  EXPECT_EQ(in.head.grad().abs().sum().item<double>(), 0.0);
}

TEST(ActionLogprobs, OfANarrowHeadComeFromLogitsOfItsDtype) {
  const at::Tensor hidden = at::randn({kActions, kHidden}), head = at::randn({kVocabulary, kHidden}).to(at::kBFloat16);
  const at::Tensor targets = at::randint(kVocabulary, {kActions}, at::kLong);
  const at::Tensor logits = at::linear(hidden.to(at::kBFloat16), head).to(at::kFloat) / 0.7;
  const at::Tensor expected = chosen(at::log_softmax(logits, 1), targets);
  EXPECT_TRUE(at::allclose(action_logprobs(hidden, head, targets, {.temperature = 0.7}), expected, 1e-6, 1e-6));
}

TEST(ActionLogprobs, MismatchedShapesAreABug) {
  const Inputs in;
  EXPECT_THROW(action_logprobs(in.hidden, in.head.narrow(1, 0, 3), in.targets), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets.narrow(0, 0, 3)), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets, {.temperature = 0.0}), InternalError);
  EXPECT_THROW(action_logprobs(in.hidden, in.head, in.targets, {.softcap = -1.0}), InternalError);
}

// Parts of any size, the last ones not filling a register, on every kind of machine.
TEST(SoftmaxKernels, SumsAndGradientsOfPartsMatchTheFormula) {
  const at::Tensor logits = at::randn({53}) * 5.0;
  for (const LogitScale scale : {LogitScale{}, LogitScale{0.8f, 2.0f}}) {
    const at::Tensor exact = logits.to(at::kDouble).set_requires_grad(true);
    const at::Tensor capped = scale.softcap == 0 ? exact : (exact / scale.softcap).tanh() * scale.softcap;
    const at::Tensor given = capped.detach().to(at::kFloat), z = capped / scale.temperature;
    const at::Tensor all = at::log_softmax(z, 0), entropy = -(all.exp() * all).sum();
    (all[40] * 0.3 + entropy * 0.7).backward();
    const float log_sum = at::logsumexp(z, 0).item<float>(), expected_entropy = entropy.item<float>();
    for (const InstructionSet set : runnable_instruction_sets()) {
      RowSums sums{-std::numeric_limits<float>::infinity(), 0, 0};
      for (const auto& [first, count] : {std::pair{0, 5}, {5, 32}, {37, 16}})
        add_logits(given.const_data_ptr<float>() + first, count, scale, sums, set);
      EXPECT_NEAR(sums.top + std::log(sums.sum), log_sum, 1e-5);
      EXPECT_NEAR(log_sum - sums.weighted / sums.sum, expected_entropy, 1e-5);
      EXPECT_NEAR(scaled_logit(given[40].item<float>(), scale, set), z[40].item<float>(), 1e-5);
      const at::Tensor gradient = at::empty({53});
      for (const auto& [first, count] : {std::pair{0, 37}, {37, 16}}) {
        logit_gradient(given.const_data_ptr<float>() + first, count, scale,
                       {log_sum, expected_entropy, 0.3f, 0.7f, first == 37 ? 3 : -1}, gradient.mutable_data_ptr<float>() + first,
                       set);
      }
      EXPECT_LT(largest_difference(gradient, exact.grad()), 1e-6);
    }
  }
}

}  // namespace
}  // namespace sluice::models::action_logprobs_test
