#include "nodes/train/train_ppo.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/values.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/objectives/value_mse.h"
#include "nodes/train/optimizer_step.h"
#include "tests/nodes/ppo_experience.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::train_ppo_test {
namespace {

using engine::Group;
using testing::actions_of;
using testing::all_weights;
using ::testing::AllOf;
using ::testing::Contains;
using testing::distance;
using testing::experience;
using testing::fill;
using testing::first_gradient;
using testing::floats;
using testing::group_of;
using ::testing::HasSubstr;
using testing::metric;
using testing::mixed_groups;
using testing::needs_of;
using testing::norm;
using ::testing::Not;
using testing::Pair;
using testing::ppo;
using testing::reinforce;
using testing::run_node;
using testing::shift_weights;
using ::testing::ThrowsMessage;
using testing::tiny_model;
using testing::TinyFolder;
using testing::trainable;
using testing::trained;
using testing::wave;

// d/dw of -mean(advantage * log p) by plain autograd, with all logits of each sample alone.
std::vector<float> policy_gradient(const LanguageModel& model, const std::vector<Group>& groups) {
  const models::Weights& weights = model.forward().transformer().weights();
  for (const Group& group : groups) {
    const auto tokens = group.read(columns::kTokens);
    const auto advantages = group.read(columns::kAdvantages);
    const auto samples = group.layout.tokens_by_sample();
    const auto actions = group.layout.actions_by_sample();
    for (size_t s = 0; s < samples.size(); ++s) {
      const std::vector<int64_t> offsets{0, static_cast<int64_t>(samples[s].size())};
      const std::vector<int64_t> own(tokens.begin() + samples[s].begin, tokens.begin() + samples[s].end);
      const at::Tensor hidden = model.forward().transformer().hidden_states(at::tensor(own), offsets);
      const at::Tensor logprobs = at::log_softmax(at::matmul(hidden, weights.head.t()), -1);
      at::Tensor loss = at::zeros({});
      for (size_t a = actions[s].begin; a < actions[s].end; ++a) {
        const auto at_token = static_cast<size_t>(group.layout.action_tokens[a]) - samples[s].begin;
        loss = loss.add(logprobs[static_cast<int64_t>(at_token) - 1][own[at_token]].mul(-advantages[a]));
      }
      if (loss.requires_grad()) loss.backward();  // a sample may have no action
    }
  }
  std::vector<float> gradient;
  for (const auto& [name, tensor] : weights.named()) {
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      gradient.push_back(tensor.grad().const_data_ptr<float>()[i] / static_cast<float>(actions_of(groups)));
    }
  }
  return gradient;
}

TEST(TrainPpo, TheGradientOnPolicyIsThePolicyGradient) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0), oracle = trainable(folder, 0);
  const std::vector<Group> groups = experience(pair);
  run_node<TrainPpo>(ppo(/*with_critic=*/false), pair.models(), groups);
  const auto expected = policy_gradient(*oracle.actor, groups);
  EXPECT_GT(norm(expected), 0.01);
  EXPECT_LT(distance(first_gradient(*pair.actor), expected), 1e-4 * norm(expected));
}

TEST(TrainPpo, GradientsDoNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const Pair packed = trainable(folder, 1e-3), single = trainable(folder, 1e-3);
  const std::vector<Group> groups = experience(packed);
  run_node<TrainPpo>(ppo(), packed.models(), groups);
  run_node<TrainPpo>(ppo(), single.models(), groups, {1, 1, 1, 1});
  for (const auto& [a, b] : {std::pair{packed.actor, single.actor}, std::pair{packed.critic, single.critic}}) {
    const auto gradient = first_gradient(*a);
    EXPECT_GT(norm(gradient), 1e-3);
    EXPECT_LT(distance(first_gradient(*b), gradient), 1e-5 * norm(gradient));
  }
}

TEST(TrainPpo, MiniBatchesDoNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const Pair packed = trainable(folder, 1e-3), single = trainable(folder, 1e-3);
  const std::vector<Group> groups = experience(packed);
  TrainPpoParams params = ppo();
  params.epochs = 2;
  params.mini_batches = 2;
  run_node<TrainPpo>(params, packed.models(), groups);
  run_node<TrainPpo>(params, single.models(), groups, {1, 1, 1, 1});
  const auto before = all_weights(*trainable(folder, 0).actor);
  const double moved = distance(all_weights(*packed.actor), before);
  EXPECT_GT(moved, 0.01);
  EXPECT_LT(distance(all_weights(*single.actor), all_weights(*packed.actor)), 1e-2 * moved);
}

TEST(TrainPpo, EveryEpochMakesAStepForEachMiniBatch) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  TrainPpoParams params = ppo();
  params.epochs = 3;
  params.mini_batches = 2;
  const auto out = run_node<TrainPpo>(params, pair.models(), experience(pair));
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 6);
  EXPECT_EQ(trained(*pair.critic).optimizer().steps(), 6);
  EXPECT_EQ(metric(out.metrics, "policy/optimizer_steps"), 6);
}

TEST(TrainPpo, OneEpochAndOneMiniBatchMakeOneStep) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), experience(pair), {2, 2});
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 1);
  EXPECT_EQ(metric(out.metrics, "policy/optimizer_steps"), 1);
}

TEST(TrainPpo, OldAndNewLogprobsAgreeBeforeTheFirstStep) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-2);
  TrainPpoParams params = ppo();
  params.epochs = 3;
  const auto out = run_node<TrainPpo>(params, pair.models(), experience(pair));
  EXPECT_LT(metric(out.metrics, "policy/logprob_difference_max"), 1e-4);
  EXPECT_GT(metric(out.metrics, "policy/ratio_max"), 1.001);  // of later epochs
}

TEST(TrainPpo, ExactSamplesAreOfTheWeightsThatTrain) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-2);
  TrainPpoParams params = ppo();
  params.on_policy = OnPolicy::kExact;
  params.epochs = 2;
  const auto out = run_node<TrainPpo>(params, pair.models(), experience(pair), {2, 2});
  EXPECT_EQ(metric(out.metrics, "policy/logprob_difference_max"), 0);
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 2);
}

// Of the last action of a sample the log-probability is changed by its last bit alone.
TEST(TrainPpo, ASampleThatIsNotExactIsRefusedByName) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-2);
  std::vector<Group> groups = experience(pair);
  for (Group::NamedColumn& column : groups[1].columns) {
    if (column.spec.name != columns::kRolloutLogprobs.name) continue;
    float& last = column.data.entries<float>().back();
    last = std::nextafter(last, -100.0f);
  }
  TrainPpoParams params = ppo();
  params.on_policy = OnPolicy::kExact;
  const auto sample = std::to_string(groups[1].layout.samples() - 1);
  EXPECT_THAT(
      [&] {
        run_node<TrainPpo>(params, pair.models(), groups, {2, 2});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("of sample " + sample + " of group 1 was sampled with log-probability -"),
                                     HasSubstr("on_policy = \"measured\""))));
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 0);
}

TEST(TrainPpo, ValueLossOnPolicyIsHalfTheMeanSquaredError) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  const std::vector<Group> groups = experience(pair);
  double sum = 0;
  for (const Group& group : groups) {
    const auto values = group.read(columns::kValues), returns = group.read(columns::kReturns);
    for (size_t a = 0; a < values.size(); ++a) sum += 0.5 * std::pow(values[a] - returns[a], 2);
  }
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), groups, {1, 3});
  EXPECT_NEAR(metric(out.metrics, "value/loss"), sum / static_cast<double>(actions_of(groups)), 1e-4);
}

TEST(TrainPpo, TheCriticLearnsToExplainTheReturns) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-2);
  const std::vector<Group> groups = experience(pair);
  TrainPpoParams params = ppo();
  params.value_objective = {.type = "value_mse", .object = std::make_shared<ValueMse>(ValueMseParams{})};
  const auto explained = [&] {
    return metric(run_node<TrainPpo>(params, pair.models(), groups).metrics, "value/explained_variance");
  };
  const double first = explained();
  for (int step = 0; step < 40; ++step) explained();
  EXPECT_LT(first, 0.5);
  EXPECT_GT(explained(), 0.9);
}

TEST(TrainPpo, ALearningRateOfZeroChangesNothing) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  const auto actor = all_weights(*pair.actor), critic = all_weights(*pair.critic);
  TrainPpoParams params = ppo();
  params.epochs = 2;
  run_node<TrainPpo>(params, pair.models(), experience(pair));
  EXPECT_EQ(all_weights(*pair.actor), actor);
  EXPECT_EQ(all_weights(*pair.critic), critic);
}

TEST(TrainPpo, ARunRepeatsBitForBit) {
  const TinyFolder folder;
  const Pair once = trainable(folder, 1e-3), twice = trainable(folder, 1e-3);
  TrainPpoParams params = ppo();
  params.epochs = 2;
  params.mini_batches = 3;
  run_node<TrainPpo>(params, once.models(), experience(once), {1, 3});
  run_node<TrainPpo>(params, twice.models(), experience(twice), {1, 3});
  EXPECT_EQ(all_weights(*once.actor), all_weights(*twice.actor));
  EXPECT_EQ(all_weights(*once.critic), all_weights(*twice.critic));
}

TEST(TrainPpo, WeightsThatAreNotFiniteAreAnErrorThatSaysSo) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  const std::vector<Group> groups = experience(pair);
  shift_weights(*pair.actor, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT([&] { run_node<TrainPpo>(ppo(), pair.models(), groups); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("policy loss is not finite (nan)")));
}

TEST(TrainPpo, AnAdvantageThatIsNotFiniteStopsBeforeAnyWeightChanges) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  const auto actor = all_weights(*pair.actor), critic = all_weights(*pair.critic);
  const std::vector<Group> groups = experience(pair, std::numeric_limits<float>::infinity());
  EXPECT_THAT(
      [&] {
        run_node<TrainPpo>(ppo(), pair.models(), groups, {1, 1, 1, 1});
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("policy loss is not finite")));
  EXPECT_EQ(all_weights(*pair.actor), actor);
  EXPECT_EQ(all_weights(*pair.critic), critic);
}

TEST(TrainPpo, AGradientThatIsNotFiniteMakesNoStep) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  const auto before = all_weights(*pair.actor);
  at::Tensor embedding = pair.actor->forward().transformer().weights().embedding;
  embedding.mutable_grad().fill_(std::numeric_limits<double>::infinity());
  EXPECT_THAT([&] { require_finite_gradients(trained(*pair.actor)); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("gradient norm is not finite (inf)")));
  EXPECT_THROW(step_optimizer(trained(*pair.actor), 3), UserError);
  EXPECT_EQ(all_weights(*pair.actor), before);
}

TEST(TrainPpo, AnIterationWithoutActionsMakesNoStep) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  std::vector<Group> groups{group_of({{{1, 2, 3}, 0}}), group_of({})};
  for (const auto& column : {columns::kRolloutLogprobs, columns::kAdvantages, columns::kReturns, columns::kValues})
    fill(groups, column, {});
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), groups);
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 0);
  EXPECT_EQ(metric(out.metrics, "policy/optimizer_steps"), 0);
}

TEST(TrainPpo, WithoutACriticNeitherReturnsNorValuesAreRead) {
  const auto reads = needs_of<TrainPpo>(ppo(/*with_critic=*/false)).reads;
  EXPECT_THAT(reads, Contains(columns::kRolloutLogprobs.spec()));
  EXPECT_THAT(reads, Not(Contains(columns::kReturns.spec())));
  EXPECT_THAT(reads, Not(Contains(columns::kValues.spec())));
  EXPECT_THAT(needs_of<TrainPpo>(ppo()).reads, Contains(columns::kValues.spec()));
}

TEST(TrainPpo, AnObjectiveWithoutRatioReadsNoOldLogprobs) {
  EXPECT_THAT(needs_of<TrainPpo>(reinforce()).reads, Not(Contains(columns::kRolloutLogprobs.spec())));
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  run_node<TrainPpo>(reinforce(), pair.models(), experience(pair));
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 1);
}

// The gradient of a run on the samples whose mask is not 0 alone, by the mask; of a masked sample nothing is computed, so its
// other columns may hold anything.
TEST(TrainPpo, WhatTheMaskExcludesIsAsIfItWereNotThere) {
  const TinyFolder folder;
  const Pair masked = trainable(folder, 1e-3), without = trainable(folder, 1e-3);
  std::vector<Group> groups = experience(masked);
  std::vector<Group> left(groups.begin() + 1, groups.end());
  std::vector<float> mask(actions_of(groups), 1.0f);
  std::fill_n(mask.begin(), groups.front().layout.actions(), 0.0f);
  fill(groups, columns::kMask, mask);
  run_node<TrainPpo>(ppo(), masked.models(), groups);
  run_node<TrainPpo>(ppo(), without.models(), left);
  EXPECT_LT(distance(first_gradient(*masked.actor), first_gradient(*without.actor)), 1e-5 * norm(first_gradient(*without.actor)));
  EXPECT_LT(distance(first_gradient(*masked.critic), first_gradient(*without.critic)),
            1e-5 * norm(first_gradient(*without.critic)));
}

TEST(TrainPpo, WhenEverythingIsMaskedNoStepIsMadeAndAWarningNamesEachModel) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  std::vector<Group> groups = experience(pair);
  fill(groups, columns::kMask, std::vector<float>(actions_of(groups), 0.0f));
  ::testing::internal::CaptureStderr();
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), groups);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("model actor was not trained"), HasSubstr("model critic was not trained")));
  EXPECT_EQ(trained(*pair.actor).optimizer().steps(), 0);
  EXPECT_EQ(trained(*pair.critic).optimizer().steps(), 0);
  EXPECT_EQ(metric(out.metrics, "policy/optimizer_steps"), 0);
}

// The recorded log-probabilities of the weights that sampled are wrong on purpose: the ratios must not see them.
TEST(TrainPpo, RecomputedOldLogprobsAreThoseOfTheWeightsBeforeTheFirstStep) {
  for (const int64_t epochs : {1, 3}) {
    const TinyFolder folder;
    const Pair pair = trainable(folder, 1e-5);  // so small that no ratio leaves 1 by much
    std::vector<Group> groups = experience(pair);
    for (Group& group : groups) {
      for (Group::NamedColumn& column : group.columns) {
        if (column.spec.name != columns::kRolloutLogprobs.name) continue;
        for (float& logprob : column.data.entries<float>()) logprob -= 1;
      }
    }
    TrainPpoParams params = ppo();
    params.epochs = epochs;
    params.recompute_old_logprobs = true;
    const auto out = run_node<TrainPpo>(params, pair.models(), groups, {2, 2});
    EXPECT_NEAR(metric(out.metrics, "policy/logprob_difference_mean"), 1, 1e-4);
    if (epochs == 1) {
      EXPECT_NEAR(metric(out.metrics, "policy/ratio_mean"), 1, 1e-6);
      EXPECT_NEAR(metric(out.metrics, "policy/ratio_max"), 1, 1e-6);
    } else {
      EXPECT_GT(metric(out.metrics, "policy/ratio_max"), 1 + 1e-6);
      EXPECT_LT(metric(out.metrics, "policy/ratio_max"), 1.2);  // e, were it taken from the recorded ones
    }
  }
}

TEST(TrainPpo, EffectiveSampleSizeIsThatOfTheRatios) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  std::vector<Group> groups = experience(pair);
  double sum = 0, squares = 0, count = 0;
  for (Group& group : groups) {
    for (Group::NamedColumn& column : group.columns) {
      if (column.spec.name != columns::kRolloutLogprobs.name) continue;
      for (float& logprob : column.data.entries<float>()) {
        const double shift = count++ / 10;
        logprob -= static_cast<float>(shift);
        sum += std::exp(shift), squares += std::exp(2 * shift);
      }
    }
  }
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), groups, {1, 3});
  EXPECT_NEAR(metric(out.metrics, "policy/effective_sample_size"), sum * sum / (count * squares), 1e-4);
}

// log policy - log reference is 0.5 on every action.
TEST(TrainPpo, DivergenceFromTheReferenceIsToldByThreeEstimators) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  std::vector<Group> groups = experience(pair);
  for (Group& group : groups) {
    const auto rollout = group.read(columns::kRolloutLogprobs);
    std::vector<float> reference(rollout.begin(), rollout.end());
    std::ranges::transform(reference, group.write(columns::kReferenceLogprobs).begin(), [](float x) { return x - 0.5f; });
  }
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), groups, {2, 2});
  EXPECT_NEAR(metric(out.metrics, "reference/kl_mean"), 0.5, 1e-4);
  EXPECT_NEAR(metric(out.metrics, "reference/kl_k2_mean"), 0.125, 1e-4);
  EXPECT_NEAR(metric(out.metrics, "reference/kl_k3_mean"), std::exp(-0.5) - 1 + 0.5, 1e-4);
}

TEST(TrainPpo, EntropyIsAtMostThatOfAUniformVocabulary) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  const auto out = run_node<TrainPpo>(ppo(), pair.models(), experience(pair));
  EXPECT_GT(metric(out.metrics, "policy/entropy_mean"), 0);
  EXPECT_LE(metric(out.metrics, "policy/entropy_mean"),
            std::log(static_cast<double>(pair.actor->forward().transformer().config().vocab_size)) + 1e-6);
}

// On-policy the loss of an action is minus its advantage: whitened ones lose nothing on the whole, in each step.
TEST(TrainPpo, WhitenedAdvantagesHaveNoMean) {
  const TinyFolder folder;
  for (const int64_t mini_batches : {1, 2}) {
    const Pair pair = trainable(folder, 0);
    TrainPpoParams params = ppo();
    params.mini_batches = mini_batches;
    const std::vector<Group> groups = experience(pair, 7.0f);
    EXPECT_GT(std::abs(metric(run_node<TrainPpo>(params, pair.models(), groups).metrics, "policy/loss")), 0.1);
    params.whiten_advantages = true;
    EXPECT_EQ(needs_of<TrainPpo>(params).scope, engine::Scope::kIteration);
    EXPECT_NEAR(metric(run_node<TrainPpo>(params, pair.models(), groups, {1, 3}).metrics, "policy/loss"), 0, 1e-5);
  }
}

// Their weights add up to less than 1, so that Bessel's variance is none, as in `whiten` of the nodes in front.
TEST(TrainPpo, WhitenedAdvantagesThatWeighLittleKeepTheirScale) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 0);
  TrainPpoParams params = ppo(/*with_critic=*/false);
  params.whiten_advantages = true;
  std::vector<Group> groups = experience(pair);
  std::vector<float> mask(actions_of(groups), 0.0f);
  mask[0] = 0.25f, mask[1] = 0.5f;
  fill(groups, columns::kMask, mask);
  const auto out = run_node<TrainPpo>(params, pair.models(), groups);
  EXPECT_GT(metric(out.metrics, "policy/grad_norm"), 1e-3);
  EXPECT_LT(metric(out.metrics, "policy/grad_norm"), 30);
}

TEST(TrainPpo, ItIsABarrierOnlyWithMoreThanOneStepAnIteration) {
  TrainPpoParams params = ppo();
  EXPECT_EQ(needs_of<TrainPpo>(params).scope, engine::Scope::kMicroBatch);
  params.mini_batches = 2;
  EXPECT_EQ(needs_of<TrainPpo>(params).scope, engine::Scope::kIteration);
  EXPECT_EQ(needs_of<TrainPpo>(params).scope_reason, "mini_batches > 1");
  params.epochs = 2;
  EXPECT_EQ(needs_of<TrainPpo>(params).scope_reason, "epochs > 1");
}

}  // namespace
}  // namespace sluice::nodes::train_ppo_test
