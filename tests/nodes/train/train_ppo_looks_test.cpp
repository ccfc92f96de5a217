// Objectives that look at the whole step, as train_ppo has them do it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodes/objectives/clip_cov.h"
#include "nodes/objectives/kl_cov.h"
#include "nodes/objectives/m2po.h"
#include "tests/nodes/ppo_experience.h"

namespace sluice::nodes::train_ppo_looks_test {
namespace {

using engine::Group;
using testing::all_weights;
using testing::distance;
using testing::experience;
using testing::metric;
using testing::needs_of;
using testing::Pair;
using testing::ppo;
using testing::run_node;
using testing::TinyFolder;
using testing::trainable;

template <class T, class P>
TrainPpoParams with(const char* type, const P& objective) {
  TrainPpoParams params = ppo(/*with_critic=*/false);
  params.objective = {.type = type, .object = std::make_shared<T>(objective)};
  return params;
}

std::vector<TrainPpoParams> looking() {
  M2poParams m2po;
  m2po.m2_threshold = 1e-4;
  KlCovParams kl_cov;
  kl_cov.cov_share = 0.2;
  ClipCovParams clip_cov;
  clip_cov.cov_share = 0.2, clip_cov.cov_low = 0;
  return {with<M2po>("m2po", m2po), with<KlCov>("kl_cov", kl_cov), with<ClipCov>("clip_cov", clip_cov)};
}

// The share of the actions that the objective has chosen, over all steps.
double chosen(const engine::MetricRow& row, const TrainPpoParams& params) {
  return metric(row, params.objective.type == "m2po" ? "policy/m2_masked" : "policy/cov_chosen");
}

TEST(TrainPpoLooks, NeitherMicroBatchesNorPassesChangeWhatIsChosenOrLearned) {
  const TinyFolder folder;
  const auto before = all_weights(*trainable(folder, 0).actor);
  for (TrainPpoParams params : looking()) {
    for (const bool whiten : {false, true}) {
      SCOPED_TRACE(params.objective.type);
      params.epochs = 2, params.mini_batches = 2, params.whiten_advantages = whiten;
      const Pair together = trainable(folder, 1e-3), apart = trainable(folder, 1e-3);
      const std::vector<Group> groups = experience(together);
      const auto of_together = run_node<TrainPpo>(params, together.models(), groups);
      const auto of_apart = run_node<TrainPpo>(params, apart.models(), groups, {1, 2, 1}, 24);
      EXPECT_EQ(metric(of_together.metrics, "policy/optimizer_steps"), 4);
      EXPECT_GT(chosen(of_together.metrics, params), 0);
      EXPECT_EQ(chosen(of_apart.metrics, params), chosen(of_together.metrics, params));
      const double moved = distance(all_weights(*together.actor), before);
      EXPECT_GT(moved, 0.01);
      EXPECT_LT(distance(all_weights(*apart.actor), all_weights(*together.actor)), 1e-2 * moved);
    }
  }
}

// The weights are those of the first step, whose log-probabilities are the recomputed ones: ratios of 1 leave nothing out.
TEST(TrainPpoLooks, TheFirstStepIsLookedAtWithWhatWasRecomputed) {
  const TinyFolder folder;
  const Pair pair = trainable(folder, 1e-3);
  TrainPpoParams params = looking().front();
  params.recompute_old_logprobs = true;
  std::vector<Group> groups = experience(pair);
  EXPECT_EQ(metric(run_node<TrainPpo>(params, pair.models(), groups, {2, 2}).metrics, "policy/m2_masked"), 0);
  params.recompute_old_logprobs = false;  // of the weights before that step
  EXPECT_GT(metric(run_node<TrainPpo>(params, pair.models(), groups, {2, 2}).metrics, "policy/m2_masked"), 0);
}

TEST(TrainPpoLooks, ExactSamplesNeedNoPassAhead) {
  const TinyFolder folder;
  TrainPpoParams params = looking().back();
  const Pair ahead = trainable(folder, 1e-3), known = trainable(folder, 1e-3);
  const std::vector<Group> groups = experience(ahead);
  const auto of_ahead = run_node<TrainPpo>(params, ahead.models(), groups, {1, 3});
  params.on_policy = OnPolicy::kExact;
  const auto of_known = run_node<TrainPpo>(params, known.models(), groups, {1, 3});
  EXPECT_EQ(chosen(of_known.metrics, params), chosen(of_ahead.metrics, params));
  EXPECT_EQ(all_weights(*known.actor), all_weights(*ahead.actor));
}

TEST(TrainPpoLooks, TheyMakeItABarrierThatSaysSo) {
  for (const TrainPpoParams& params : looking()) {
    const engine::NodeNeeds needs = needs_of<TrainPpo>(params);
    EXPECT_EQ(needs.scope, engine::Scope::kIteration);
    EXPECT_EQ(needs.scope_reason, "objective = \"" + params.objective.type + "\"");
    EXPECT_EQ(needs.steps, params.objective.object->looks() + 1);
  }
}

}  // namespace
}  // namespace sluice::nodes::train_ppo_looks_test
