// Objectives that look at the whole optimizer step before the loss of any of its samples.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "nodes/objectives/action_draws.h"
#include "nodes/objectives/clip_cov.h"
#include "nodes/objectives/kl_cov.h"
#include "nodes/objectives/m2po.h"
#include "tests/nodes/objectives/objective_support.h"

namespace sluice::nodes::step_objectives_test {
namespace {

using testing::expect_gradient_is_numeric;
using testing::expect_near;
using testing::gradient;
using testing::Loss;
using testing::metric;
using testing::one_sample;
using testing::tensor;
using testing::Vector;
using testing::vector_of;

// What the steps of this test are made of.
struct StepSample {
  Vector logprobs, old_logprobs, advantages, mask;
  std::vector<int64_t> draws;
};

StepSample some_sample(std::mt19937& random, size_t actions) {
  std::normal_distribution<double> normal;
  StepSample sample;
  for (size_t i = 0; i < actions; ++i) {
    sample.logprobs.push_back(-1 + normal(random));
    sample.old_logprobs.push_back(sample.logprobs.back() + 0.5 * normal(random));
    sample.advantages.push_back(normal(random));
    sample.mask.push_back(std::uniform_int_distribution<int>(0, 2)(random) * 0.5);
    sample.draws.push_back(static_cast<uint32_t>(random()));
  }
  return sample;
}

ObjectiveInputs part_of(const std::vector<StepSample>& samples, const std::vector<size_t>& order) {
  StepSample all;
  std::vector<int64_t> offsets{0};
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const size_t s : order) {
    append(all.logprobs, samples[s].logprobs), append(all.old_logprobs, samples[s].old_logprobs);
    append(all.advantages, samples[s].advantages), append(all.mask, samples[s].mask), append(all.draws, samples[s].draws);
    offsets.push_back(static_cast<int64_t>(all.logprobs.size()));
  }
  ObjectiveInputs inputs = one_sample(tensor(all.logprobs), all.old_logprobs, all.advantages);
  inputs.mask = tensor(all.mask), inputs.action_offsets = offsets, inputs.draws = at::tensor(all.draws, at::kLong);
  return inputs;
}

std::vector<std::pair<std::string, std::shared_ptr<Objective>>> step_objectives() {
  M2poParams m2po;
  m2po.m2_threshold = 0.1;
  KlCovParams kl_cov;
  kl_cov.cov_share = 0.2;
  ClipCovParams clip_cov;
  clip_cov.cov_share = 0.1, clip_cov.cov_low = 0, clip_cov.clip_low = clip_cov.clip_high = 0.5;
  return {{"m2po", std::make_shared<M2po>(m2po)},
          {"kl_cov", std::make_shared<KlCov>(kl_cov)},
          {"clip_cov", std::make_shared<ClipCov>(clip_cov)}};
}

// Eight actions, whose numbers below were worked out by formulas in PyTorch (algorithm 1 of the paper; core_algos.py of verl).
const Vector kLogprobs{-0.5, -1.0, -0.2, -2.0, -0.1, -0.9, -1.5, -0.3};
const Vector kOld{-0.9, -0.8, -0.25, -1.2, -0.6, -1.6, -1.4, -0.3};
const Vector kAdvantages{1.0, 1.0, 1.0, -1.5, -1.5, 2.0, -0.5, 0.5};

ObjectiveInputs eight_actions() {
  ObjectiveInputs inputs = one_sample(tensor(kLogprobs), kOld, kAdvantages);
  inputs.draws = at::tensor(std::vector<int64_t>{7, 1, 9, 2, 3, 4, 8, 5}, at::kLong);
  return inputs;
}

ObjectiveResult of_one_step(const Objective& objective, ObjectiveInputs inputs = eight_actions()) {
  inputs.step = found_in_step(objective, {inputs});
  return objective.compute(inputs);
}

Vector gradient_of(const Objective& objective) {
  ObjectiveInputs inputs = eight_actions();
  inputs.step = found_in_step(objective, {inputs});
  inputs.logprobs.requires_grad_(true);
  objective.compute(inputs).loss_sum.backward();
  return vector_of(inputs.logprobs.grad());
}

M2po m2po(double threshold) {
  M2poParams params;
  params.m2_threshold = threshold;
  return M2po(params);
}

KlCov kl_cov(double share, double coefficient) {
  KlCovParams params;
  params.cov_share = share, params.penalty_coefficient = coefficient;
  return KlCov(params);
}

ClipCov clip_cov(double share) {
  ClipCovParams params;
  params.cov_share = share, params.cov_low = 0.05, params.cov_high = 2;
  return ClipCov(params);
}

TEST(M2po, LossIsThatOfTheAlgorithm) {
  for (const auto& [threshold, loss] : {std::pair(0.04, 0.5554987656), std::pair(0.2, -4.9638313470),
                                        std::pair(0.3, -4.2898379008), std::pair(1.0, -4.2898379008)})
    EXPECT_NEAR(of_one_step(m2po(threshold)).loss_sum.item().toDouble(), loss, 1e-9) << threshold;
}

TEST(M2po, WhatIsLeftOutHasNoGradientAndStillCounts) {
  const ObjectiveResult result = of_one_step(m2po(0.2));
  EXPECT_EQ(result.count, 8);
  EXPECT_NEAR(metric(result, "policy/m2_masked"), 1.0 / 8, 1e-12);
  EXPECT_NEAR(metric(result, "policy/m2_mean"), (0.16 + 0.0025 + 0.64 + 0.49 + 0.01) / 5, 1e-6);
  const Vector slope = gradient_of(m2po(0.2));
  EXPECT_EQ(slope[3], 0);
  EXPECT_NEAR(slope[4], 1.5 * std::exp(0.5), 1e-9);  // moves back: never left out, whatever its ratio
}

TEST(M2po, OfEqualRatiosAllAreLeftOut) {
  ObjectiveInputs inputs = one_sample(tensor({-1, -1, -1.9}), {-2, -2, -2}, {1, 1, 1});
  EXPECT_NEAR(of_one_step(m2po(0.4), inputs).loss_sum.item().toDouble(), -std::exp(0.1), 1e-12);
}

TEST(KlCov, LossIsThatOfVerl) {
  EXPECT_NEAR(of_one_step(kl_cov(1e-4, 1.0)).loss_sum.item().toDouble(), -3.4898379008, 1e-9);
  EXPECT_NEAR(of_one_step(kl_cov(0.25, 0.5)).loss_sum.item().toDouble(), -3.8398379008, 1e-9);
}

TEST(KlCov, OfEqualCovariancesAllHaveThePenalty) {
  ObjectiveInputs inputs = one_sample(tensor({-1, -1, -3, -3}), {-2, -2, -3, -3}, {1, 1, -1, -1});
  EXPECT_NEAR(metric(of_one_step(kl_cov(0.25, 1.0), inputs), "policy/cov_chosen"), 1, 1e-12);  // all covariances are 1
}

// Actions 2, 6 and 7 are free of the clip and between the bounds; their draws are 9, 8 and 5.
TEST(ClipCov, DrawsAsManyAsTheShareAmongThoseThatMayBeDrawn) {
  const Vector losses{-1.2, -0.8187307531, -1.0512710964, 1.2, 2.4730819061, -2.4, 0.4524187090, -0.5};
  const double all = std::accumulate(losses.begin(), losses.end(), 0.0);
  const auto loss_without = [&](std::initializer_list<size_t> drawn) {
    double loss = all;
    for (const size_t i : drawn) loss -= losses[i];
    return loss;
  };
  EXPECT_NEAR(of_one_step(clip_cov(1e-4)).loss_sum.item().toDouble(), loss_without({7}), 1e-9);  // one at least
  EXPECT_NEAR(of_one_step(clip_cov(0.25)).loss_sum.item().toDouble(), loss_without({7, 6}), 1e-9);
  EXPECT_NEAR(of_one_step(clip_cov(0.9)).loss_sum.item().toDouble(), loss_without({7, 6, 2}), 1e-9);
  EXPECT_EQ(gradient_of(clip_cov(0.25))[6], 0);
  EXPECT_NEAR(metric(of_one_step(clip_cov(0.25)), "policy/cov_chosen"), 2.0 / 8, 1e-12);
}

// A difference is taken on either side of the key that was found, so the step is looked at again for each: the same are chosen.
TEST(StepObjective, GradientsAgreeWithDifferences) {
  for (const auto& [name, objective] : step_objectives()) {
    SCOPED_TRACE(name);
    std::mt19937 random(11);
    const std::vector<StepSample> samples{some_sample(random, 6), some_sample(random, 9)};
    const ObjectiveInputs inputs = part_of(samples, {0, 1});
    const Loss loss = [&](const at::Tensor& logprobs) {
      ObjectiveInputs moved = inputs;
      moved.logprobs = logprobs;
      moved.step = found_in_step(*objective, {moved});
      return objective->compute(moved);
    };
    expect_gradient_is_numeric(loss, vector_of(inputs.logprobs), 1e-5);
  }
}

// The step is cut into parts at random, as micro-batches, passes and ranks cut it: what is found has the same bits, and so the
// same actions are chosen.
TEST(StepObjective, NothingDependsOnHowTheStepIsCut) {
  std::mt19937 random(12);
  for (int round = 0; round < 40; ++round) {
    std::vector<StepSample> samples;
    for (int s = 0; s < 8; ++s) samples.push_back(some_sample(random, std::uniform_int_distribution<size_t>(0, 9)(random)));
    samples[5] = samples[2];  // the same again: ties
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const std::vector<size_t> together = order;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<size_t>> cut;
    for (const size_t s : order) {
      if (cut.empty() || std::uniform_int_distribution<int>(0, 1)(random) == 0) cut.emplace_back();
      cut.back().push_back(s);
    }
    for (const auto& [name, objective] : step_objectives()) {
      SCOPED_TRACE(name);
      ObjectiveInputs whole = part_of(samples, together);
      std::vector<ObjectiveInputs> parts;
      for (const auto& part : cut) parts.push_back(part_of(samples, part));
      whole.step = found_in_step(*objective, {whole});
      ASSERT_EQ(found_in_step(*objective, parts), whole.step);

      whole.logprobs.requires_grad_(true);
      const ObjectiveResult of_whole = objective->compute(whole);
      of_whole.loss_sum.backward();
      const Vector slope = vector_of(whole.logprobs.grad());
      double loss_sum = 0, count = 0;
      for (size_t p = 0; p < parts.size(); ++p) {
        parts[p].step = whole.step;
        parts[p].logprobs.requires_grad_(true);
        const ObjectiveResult result = objective->compute(parts[p]);
        result.loss_sum.backward();
        loss_sum += result.loss_sum.item().toDouble(), count += result.count;
        const Vector of_part = vector_of(parts[p].logprobs.grad());
        for (size_t i = 0; i < cut[p].size(); ++i) {
          const auto begin = slope.begin() + whole.action_offsets[cut[p][i]];
          expect_near({of_part.begin() + parts[p].action_offsets[i], of_part.begin() + parts[p].action_offsets[i + 1]},
                      {begin, begin + static_cast<std::ptrdiff_t>(samples[cut[p][i]].logprobs.size())});
        }
      }
      EXPECT_NEAR(loss_sum, of_whole.loss_sum.item().toDouble(), 1e-9);
      EXPECT_NEAR(count, of_whole.count, 1e-9);
    }
  }
}

TEST(StepObjective, AStepWithoutActionsIsNoFailure) {
  for (const auto& [name, objective] : step_objectives()) {
    SCOPED_TRACE(name);
    const ObjectiveResult result = of_one_step(*objective, one_sample(tensor({}), {}, {}));
    EXPECT_EQ(result.count, 0);
  }
}

TEST(StepObjective, WithoutALookItFails) {
  for (const auto& [name, objective] : step_objectives())
    EXPECT_THROW(objective->compute(eight_actions()), InternalError) << name;
}

engine::Layout two_groups() {
  engine::Layout layout;
  layout.add_sample(4, 3), layout.add_sample(3, 2), layout.end_group();
  layout.add_sample(5, 3), layout.end_group();
  return layout;
}

TEST(ActionDraws, AreNamedByGroupAndSample) {
  const auto longs = [](const at::Tensor& x) {
    return std::vector<int64_t>(x.const_data_ptr<int64_t>(), x.const_data_ptr<int64_t>() + x.numel());
  };
  const auto drawn = [&](const ActionDraws& draws, int64_t first_group, std::vector<size_t> chosen) {
    return longs(draws_of(
        draws, two_groups(), [=](size_t g) { return first_group + static_cast<int64_t>(g); }, chosen));
  };
  const ActionDraws draws{.seed = 7, .iteration = 3, .epoch = 0};
  const std::vector<int64_t> all = drawn(draws, 4, {0, 1, 2});
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 8u);
  EXPECT_EQ(drawn(draws, 4, {1, 2}), std::vector<int64_t>(all.begin() + 3, all.end()));
  EXPECT_EQ(drawn(draws, 5, {0}),
            std::vector<int64_t>(all.begin() + 5, all.end()));  // the first sample of group 5, of 3 actions too
  for (const ActionDraws& other : {ActionDraws{8, 3, 0}, ActionDraws{7, 4, 0}, ActionDraws{7, 3, 1}})
    EXPECT_NE(drawn(other, 4, {0, 1, 2}), all);
}

}  // namespace
}  // namespace sluice::nodes::step_objectives_test
