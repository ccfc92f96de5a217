#include "nodes/train/train_dpo.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "nodes/objectives/preference/dpo.h"
#include "nodes/objectives/preference/simpo.h"
#include "tests/nodes/tiny_model.h"
#include "tests/nodes/train/pairs.h"
#include "tests/nodes/train/with_reference.h"

namespace sluice::nodes::train_dpo_test {
namespace {

using testing::all_weights;
using ::testing::FloatNear;
using testing::floats;
using ::testing::HasSubstr;
using testing::metric;
using testing::Models;
using testing::pairs;
using ::testing::Pointwise;
using testing::run_node;
using testing::scored;
using ::testing::ThrowsMessage;
using testing::tiny_model;
using testing::TinyFolder;
using testing::with_reference;

engine::Component<PreferenceObjective> dpo(double beta) {
  return {.type = "dpo", .object = std::make_shared<Dpo>(DpoParams{.beta = beta}), .parts = {}};
}

TrainDpoParams params_of(engine::Component<PreferenceObjective> objective = dpo(0.5)) {
  return {.model = "actor", .objective = std::move(objective)};
}

class TrainDpoTest : public ::testing::Test {
 protected:
  std::shared_ptr<LanguageModel> trainable(double learning_rate, uint64_t seed = 1) const {
    return tiny_model(folder_.path(), {.seed = seed, .optimizer = models::AdamWOptions{.learning_rate = learning_rate}});
  }

  engine::MetricRow train(const std::shared_ptr<LanguageModel>& model, std::vector<engine::Group> groups,
                          const TrainDpoParams& params = params_of(), std::vector<size_t> groups_per_batch = {}) const {
    return run_node<TrainDpo>(params, {{"actor", model}}, std::move(groups), std::move(groups_per_batch)).metrics;
  }

  TinyFolder folder_;
};

TEST_F(TrainDpoTest, OfAPolicyThatIsItsReferenceTheLossIsLogTwo) {
  const auto model = trainable(0);
  const auto metrics = train(model, with_reference(pairs(), model));
  EXPECT_NEAR(metric(metrics, "policy/loss"), std::log(2), 1e-6);
  EXPECT_NEAR(metric(metrics, "preference/reward_margin"), 0, 1e-6);
}

TEST_F(TrainDpoTest, LossIsThatOfTheSumsOverTheActionsOfBestAndWorst) {
  const auto model = trainable(0), reference = trainable(0, 2);
  const auto groups = with_reference(pairs(), reference);
  const auto of_policy =
      floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model}}, groups), "reference_logprobs");
  const auto of_reference =
      floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", reference}}, groups), "reference_logprobs");
  std::vector<double> ratio;  // actions: 3 and 1, then 2, 3 and 1, then 1 and 1
  for (size_t a = 0; a < of_policy.size(); ++a) ratio.push_back(of_policy[a] - of_reference[a]);
  const double first = ratio[3] - (ratio[0] + ratio[1] + ratio[2]), second = ratio[4] + ratio[5] - ratio[9];
  const auto loss = [](double difference) { return std::log1p(std::exp(-0.5 * difference)); };

  const auto metrics = train(model, groups);
  EXPECT_NEAR(metric(metrics, "policy/loss"), (loss(first) + loss(second)) / 2, 1e-5);
  EXPECT_NEAR(metric(metrics, "preference/reward_margin"), 0.5 * (first + second) / 2, 1e-5);
  EXPECT_EQ(metric(metrics, "preference/pairs"), 2);
  EXPECT_EQ(metric(metrics, "preference/groups_without_pair"), 1);
}

TEST_F(TrainDpoTest, TheStepDoesNotDependOnHowGroupsArePacked) {
  const auto packed = trainable(1e-3), single = trainable(1e-3), reference = trainable(0, 2);
  const auto groups = with_reference(pairs(), reference);
  const auto of_packed = train(packed, groups);
  const auto of_single = train(single, groups, params_of(), {1, 1, 1});
  EXPECT_NEAR(metric(of_packed, "policy/grad_norm"), metric(of_single, "policy/grad_norm"),
              1e-5 * metric(of_packed, "policy/grad_norm"));
  EXPECT_NEAR(metric(of_packed, "policy/loss"), metric(of_single, "policy/loss"), 1e-6);
  EXPECT_THAT(all_weights(*packed), Pointwise(FloatNear(1e-5f), all_weights(*single)));
}

TEST_F(TrainDpoTest, StepsRaiseTheMarginOfThePairs) {
  const auto model = trainable(1e-3);
  const auto groups = with_reference(pairs(), model);
  for (int step = 0; step < 10; ++step) train(model, groups);
  const auto metrics = train(model, groups);
  EXPECT_GT(metric(metrics, "preference/reward_margin"), 0.5);
  EXPECT_EQ(metric(metrics, "preference/accuracy"), 1);
}

TEST_F(TrainDpoTest, WithoutPairsThereIsNoStep) {
  const auto model = trainable(1e-2);
  const auto before = all_weights(*model);
  const auto metrics = train(model, with_reference({scored({{{5, 17}, 1}, {{5, 18}, 1}}, {1, 1})}, model));
  EXPECT_EQ(all_weights(*model), before);
  EXPECT_EQ(metric(metrics, "preference/groups_without_pair"), 1);
}

TEST_F(TrainDpoTest, AnActionWithoutWeightDoesNotExist) {
  const auto shorter = trainable(1e-3), masked = trainable(1e-3);
  const std::vector<engine::Group> plain = {scored({{{5, 17, 42}, 1}, {{5, 17, 33}, 1}}, {0, 1})};
  auto longer = with_reference({scored({{{5, 17, 42, 8}, 2}, {{5, 17, 33}, 1}}, {0, 1})}, masked);
  longer[0].columns.back().data.entries<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  std::ranges::copy(std::vector<float>{1, 0, 1}, longer[0].write(columns::kMask).begin());
  const auto of_shorter = train(shorter, with_reference(plain, shorter));
  const auto of_masked = train(masked, longer);
  EXPECT_NEAR(metric(of_masked, "policy/loss"), metric(of_shorter, "policy/loss"), 1e-6);
  EXPECT_THAT(all_weights(*masked), Pointwise(FloatNear(1e-5f), all_weights(*shorter)));
}

TEST_F(TrainDpoTest, AnObjectiveWithoutReferenceReadsNone) {
  const engine::Component<PreferenceObjective> simpo{
      .type = "simpo", .object = std::make_shared<Simpo>(SimpoParams{}), .parts = {}};
  EXPECT_GT(metric(train(trainable(0), pairs(), params_of(simpo)), "policy/loss"), 0);
}

TEST_F(TrainDpoTest, NllOfTheChosenSampleIsAddedByItsMeanOverActions) {
  const auto model = trainable(0);
  const auto groups = with_reference({scored({{{5, 17, 42, 8}, 2}, {{5, 17, 33}, 1}}, {1, 0})}, model);
  const auto logprobs = groups[0].read(columns::kReferenceLogprobs);
  TrainDpoParams params = params_of();
  params.nll_coefficient = 2;
  EXPECT_NEAR(metric(train(model, groups, params), "policy/loss"), std::log(2) - (logprobs[0] + logprobs[1]), 1e-5);
}

TEST_F(TrainDpoTest, AScoreThatIsNotFiniteIsAnError) {
  const auto model = trainable(0);
  const auto groups = with_reference({scored({{{5, 17}, 1}, {{5, 18}, 1}}, {1, std::numeric_limits<float>::infinity()})}, model);
  EXPECT_THAT([&] { train(model, groups); }, ThrowsMessage<UserError>(HasSubstr("sample 1 of group 0")));
}

}  // namespace
}  // namespace sluice::nodes::train_dpo_test
