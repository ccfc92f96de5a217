#include "nodes/train/train_reward.h"

#include <gmock/gmock.h>

#include <cmath>

#include "nodes/columns/columns.h"
#include "nodes/scorers/reward_model.h"
#include "tests/nodes/tiny_model.h"
#include "tests/nodes/train/pairs.h"

namespace sluice::nodes::train_reward_test {
namespace {

using testing::all_weights;
using ::testing::FloatNear;
using testing::floats;
using testing::metric;
using testing::pairs;
using ::testing::Pointwise;
using testing::run_node;
using testing::scored;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinySample;

class TrainRewardTest : public ::testing::Test {
 protected:
  std::shared_ptr<LanguageModel> trainable(double learning_rate) const {
    return tiny_model(folder_.path(), {.value_head = true, .optimizer = models::AdamWOptions{.learning_rate = learning_rate}});
  }

  engine::MetricRow train(const std::shared_ptr<LanguageModel>& model, std::vector<engine::Group> groups, double centre = 0,
                          std::vector<size_t> groups_per_batch = {}, Comparison compare = Comparison::kBestAndWorst) const {
    return run_node<TrainReward>(TrainRewardParams{.model = "critic", .compare = compare, .centre_coefficient = centre},
                                 {{"critic", model}}, std::move(groups), std::move(groups_per_batch))
        .metrics;
  }
  engine::MetricRow compare(const std::shared_ptr<LanguageModel>& model, Comparison compare,
                            std::vector<engine::Group> groups) const {
    return train(model, std::move(groups), 0, {}, compare);
  }

  // Of all samples, by the scorer that is compared with transformers.
  std::vector<float> rewards(const std::shared_ptr<LanguageModel>& model) const {
    return floats(run_node<RewardModel>(RewardModelParams{.model = "critic"}, {{"critic", model}}, pairs()), "score");
  }

  TinyFolder folder_;
};

double loss(double difference) { return std::log1p(std::exp(-difference)); }

TEST_F(TrainRewardTest, LossIsThatOfBradleyAndTerryOnBestAndWorst) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  const auto metrics = train(model, pairs());
  EXPECT_NEAR(metric(metrics, "reward_model/loss"), (loss(r[1] - r[0]) + loss(r[2] - r[4])) / 2, 1e-5);
  EXPECT_NEAR(metric(metrics, "preference/reward_margin"), (r[1] - r[0] + r[2] - r[4]) / 2, 1e-5);
  EXPECT_NEAR(metric(metrics, "preference/chosen_reward_mean"), (r[1] + r[2]) / 2, 1e-5);
  EXPECT_NEAR(metric(metrics, "preference/accuracy"), ((r[1] > r[0]) + (r[2] > r[4])) / 2.0, 1e-9);
  EXPECT_EQ(metric(metrics, "preference/groups_without_pair"), 1);
}

// The second group is 2 > 3 > 4: three pairs, of which each counts a third.
TEST_F(TrainRewardTest, AllPairsOfAGroupCountAsMuchAsOne) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  const double three = (loss(r[2] - r[3]) + loss(r[2] - r[4]) + loss(r[3] - r[4])) / 3;
  const auto metrics = compare(model, Comparison::kAllPairs, pairs());
  EXPECT_NEAR(metric(metrics, "reward_model/loss"), (loss(r[1] - r[0]) + three) / 2, 1e-5);
  EXPECT_EQ(metric(metrics, "preference/pairs"), 4);
  EXPECT_EQ(metric(metrics, "preference/groups_without_pair"), 1);
  const double margin = (loss(r[2] - r[3] - 0.5) + loss(r[2] - r[4] - 0.5) + loss(r[3] - r[4] - 0.5)) / 3;
  EXPECT_NEAR(metric(compare(model, Comparison::kAllPairs, pairs(0.5f)), "reward_model/loss"),
              (loss(r[1] - r[0] - 0.5) + margin) / 2, 1e-5);
}

// exp(r) of the best over that of all, and then of the second over those of the second and the third.
TEST_F(TrainRewardTest, PlackettAndLuceSayHowLikelyTheWholeOrderIs) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  const double order =
      std::exp(r[2]) / (std::exp(r[2]) + std::exp(r[3]) + std::exp(r[4])) * std::exp(r[3]) / (std::exp(r[3]) + std::exp(r[4]));
  const auto metrics = compare(model, Comparison::kPlackettLuce, pairs());
  EXPECT_NEAR(metric(metrics, "reward_model/loss"), (loss(r[1] - r[0]) - std::log(order)) / 2, 1e-5);
}

// As where its score is made up, since its scorer could not score it.
TEST_F(TrainRewardTest, MaskedSamplesAreNotCompared) {
  const TinySample first{{5, 17, 42, 8}, 2}, masked{{5, 17, 9}, 1}, last{{5, 17, 42, 33}, 1};
  for (const Comparison comparison : {Comparison::kBestAndWorst, Comparison::kAllPairs, Comparison::kPlackettLuce}) {
    engine::Group with = scored({first, masked, last}, {0, 100, 1});
    std::ranges::copy(std::vector<float>{1, 1, 0, 1}, with.write(columns::kMask).begin());
    const engine::MetricRow found = compare(trainable(0), comparison, {with});
    EXPECT_EQ(metric(found, "preference/pairs"), 1);
    EXPECT_NEAR(metric(found, "reward_model/loss"),
                metric(compare(trainable(0), comparison, {scored({first, last}, {0, 1})}), "reward_model/loss"), 1e-6);
  }
}

TEST_F(TrainRewardTest, EqualScoresAreNotCompared) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  const auto tied = [] {
    std::vector<engine::Group> groups = pairs();
    std::ranges::copy(std::vector<float>{1, 1, 0}, groups[1].columns.back().data.entries<float>().begin());
    return std::vector<engine::Group>{std::move(groups[1])};
  };
  EXPECT_NEAR(metric(compare(model, Comparison::kAllPairs, tied()), "reward_model/loss"),
              (loss(r[2] - r[4]) + loss(r[3] - r[4])) / 2, 1e-5);
  EXPECT_NEAR(metric(compare(model, Comparison::kPlackettLuce, tied()), "reward_model/loss"),
              loss(r[2] - r[4]) + loss(r[3] - r[4]), 1e-5);
}

TEST_F(TrainRewardTest, StepsOfRankingsDoNotDependOnHowGroupsArePackedAndLearnThem) {
  for (const Comparison compare : {Comparison::kAllPairs, Comparison::kPlackettLuce}) {
    const auto packed = trainable(1e-3), single = trainable(1e-3);
    train(packed, pairs(), 0, {}, compare);
    train(single, pairs(), 0, {1, 1, 1}, compare);
    EXPECT_THAT(all_weights(*packed), Pointwise(FloatNear(1e-5f), all_weights(*single)));
    const auto apart = trainable(1e-3);
    run_node<TrainReward>(TrainRewardParams{.model = "critic", .compare = compare}, {{"critic", apart}}, pairs(), {}, 6);
    EXPECT_THAT(all_weights(*apart), Pointwise(FloatNear(1e-5f), all_weights(*packed)));
    for (int step = 0; step < 20; ++step) train(packed, pairs(), 0, {}, compare);
    EXPECT_EQ(metric(train(packed, pairs(), 0, {}, compare), "preference/accuracy"), 1);
  }
}

TEST_F(TrainRewardTest, AMarginIsAskedForOnTopWhereThereIsOne) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  EXPECT_NEAR(metric(train(model, pairs(0.75f)), "reward_model/loss"), (loss(r[1] - r[0] - 0.75) + loss(r[2] - r[4] - 0.75)) / 2,
              1e-5);
}

TEST_F(TrainRewardTest, CentringAddsTheSquaredSum) {
  const auto model = trainable(0);
  const auto r = rewards(model);
  const double centre = (std::pow(r[0] + r[1], 2) + std::pow(r[2] + r[4], 2)) / 2;
  EXPECT_NEAR(metric(train(model, pairs(), 0.5), "reward_model/loss") - metric(train(model, pairs()), "reward_model/loss"),
              0.5 * centre, 1e-5);
}

TEST_F(TrainRewardTest, TheStepDoesNotDependOnHowGroupsArePacked) {
  const auto packed = trainable(1e-3), single = trainable(1e-3);
  const auto of_packed = train(packed, pairs(), 0.01);
  const auto of_single = train(single, pairs(), 0.01, {1, 1, 1});
  EXPECT_NEAR(metric(of_packed, "reward_model/grad_norm"), metric(of_single, "reward_model/grad_norm"),
              1e-5 * metric(of_packed, "reward_model/grad_norm"));
  EXPECT_THAT(all_weights(*packed), Pointwise(FloatNear(1e-5f), all_weights(*single)));
}

TEST_F(TrainRewardTest, StepsLearnThePreferences) {
  const auto model = trainable(1e-3);
  for (int step = 0; step < 20; ++step) train(model, pairs());
  const auto metrics = train(model, pairs());
  EXPECT_EQ(metric(metrics, "preference/accuracy"), 1);
  EXPECT_LT(metric(metrics, "reward_model/loss"), 0.2);
}

TEST_F(TrainRewardTest, WithoutPairsThereIsNoStep) {
  const auto model = trainable(1e-2);
  const auto before = all_weights(*model);
  train(model, {scored({{{5, 17}, 1}}, {1})});
  EXPECT_EQ(all_weights(*model), before);
}

}  // namespace
}  // namespace sluice::nodes::train_reward_test
