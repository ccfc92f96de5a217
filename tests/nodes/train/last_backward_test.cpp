#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/objectives/preference/simpo.h"
#include "nodes/train/train_dpo.h"
#include "nodes/train/train_kto.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_reward.h"
#include "nodes/train/train_sft.h"
#include "tests/nodes/gradients_in_one_process.h"
#include "tests/nodes/ppo_experience.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::last_backward_test {
namespace {

using testing::GradientsInOneProcess;
using testing::mixed_groups;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

// Every node that trains says which backward is the last, passes and micro-batches considered: all buckets of its models but the
// first have gone out before the step.
class LastBackward : public ::testing::Test {
 protected:
  static constexpr int64_t kPassTokens = 24;  // several passes a micro-batch

  std::shared_ptr<LanguageModel> model(engine::GradientGroup* group, TinyOptions options = {}) {
    options.optimizer = models::AdamWOptions{};
    options.gradients = group;
    return tiny_model(folder_.path(), options);
  }

  static void expect_all_gone(LanguageModel& model, const GradientsInOneProcess& groups) {
    const size_t buckets = trained(model).optimizer().buckets().size();
    EXPECT_GT(buckets, 1u);
    EXPECT_EQ(static_cast<size_t>(groups.asked_by(0)), buckets - 1);
  }

  static std::vector<engine::Group> scored_groups() {
    std::vector<engine::Group> groups = mixed_groups();
    for (engine::Group& group : groups) {
      float score = 0;
      for (float& entry : group.write(columns::kScore)) entry = score++;
    }
    return groups;
  }

  const TinyFolder folder_;
  GradientsInOneProcess groups_{1, 1};
};

TEST_F(LastBackward, OfSupervisedTraining) {
  const auto actor = model(groups_.rank(0));
  run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", actor}}, mixed_groups(), {1, 2, 1}, kPassTokens);
  expect_all_gone(*actor, groups_);
}

TEST_F(LastBackward, OfPairs) {
  const auto actor = model(groups_.rank(0));
  TrainDpoParams params{.model = "actor", .objective = {}};
  params.objective = {.type = "simpo", .object = std::make_shared<Simpo>(SimpoParams{}), .parts = {}};
  run_node<TrainDpo>(params, {{"actor", actor}}, scored_groups(), {1, 1, 2});
  expect_all_gone(*actor, groups_);
}

TEST_F(LastBackward, OfLabelledSamples) {
  const auto actor = model(groups_.rank(0));
  TrainKtoParams params;
  params.model = "actor";
  std::vector<engine::Group> groups = scored_groups();
  std::erase_if(groups, [](const engine::Group& group) { return group.layout.samples() < 2; });
  for (engine::Group& group : groups) group.write(columns::kReferenceLogprobs);
  run_node<TrainKto>(params, {{"actor", actor}}, groups, std::vector<size_t>(groups.size(), 1), kPassTokens);
  expect_all_gone(*actor, groups_);
}

TEST_F(LastBackward, OfARewardModel) {
  const auto critic = model(groups_.rank(0), {.value_head = true});
  run_node<TrainReward>(TrainRewardParams{.model = "critic"}, {{"critic", critic}}, scored_groups(), {1, 1, 2});
  expect_all_gone(*critic, groups_);
}

TEST_F(LastBackward, OfAPolicyAndItsCritic) {
  for (const bool barrier : {false, true}) {
    GradientsInOneProcess of_actor(1, 1), of_critic(1, 1);
    const testing::Pair pair{model(of_actor.rank(0)), model(of_critic.rank(0), {.value_head = true})};
    TrainPpoParams params = testing::ppo();
    params.whiten_advantages = barrier;
    run_node<TrainPpo>(params, pair.models(), testing::experience(pair), {1, 2, 1}, kPassTokens);
    expect_all_gone(*pair.actor, of_actor);
    expect_all_gone(*pair.critic, of_critic);
  }
}

TEST_F(LastBackward, OfBothHeadsOfOneModel) {
  const auto actor = model(groups_.rank(0), {.both_heads = true});
  const testing::Pair pair{actor, actor};
  std::vector<engine::Group> groups = testing::experience({model(nullptr), model(nullptr, {.value_head = true})});
  TrainPpoParams params = testing::ppo();
  params.critic = "actor";
  run_node<TrainPpo>(params, pair.models(), groups, {1, 2, 1}, kPassTokens);
  expect_all_gone(*actor, groups_);
}

}  // namespace
}  // namespace sluice::nodes::last_backward_test
