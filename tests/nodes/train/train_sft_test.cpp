#include "nodes/train/train_sft.h"
#include "models/folder/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::train_sft_test {
namespace {

using testing::all_weights;
using testing::floats;
using testing::group_of;
using ::testing::HasSubstr;
using testing::metric;
using testing::mixed_groups;
using testing::run_node;
using testing::shift_weights;
using testing::tiny_model;
using testing::TinyFolder;
using testing::trained;

const TrainSftParams kParams{.model = "actor"};

std::shared_ptr<LanguageModel> trainable_actor(const TinyFolder& folder, double learning_rate) {
  return tiny_model(folder.path(), {.optimizer = models::AdamWOptions{.learning_rate = learning_rate}});
}

TEST(TrainSft, LossIsTheMeanOfMinusTheLogProbabilityOfAllActions) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 0);
  const auto logprobs =
      floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model}}, mixed_groups()), "reference_logprobs");
  const double mean = std::accumulate(logprobs.begin(), logprobs.end(), 0.0) / static_cast<double>(logprobs.size());
  const auto out = run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups(), {1, 2, 1});
  EXPECT_NEAR(metric(out.metrics, "policy/loss"), -mean, 1e-5);
}

// The log-probabilities of the actions of mixed_groups(): 3 and 1, 5, then 1, 4 and 2, then 2 and none.
std::vector<float> logprobs_of(const std::shared_ptr<LanguageModel>& model) {
  return floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model}}, mixed_groups()), "reference_logprobs");
}

std::vector<engine::Group> masked(const std::vector<float>& mask) {
  std::vector<engine::Group> groups = mixed_groups();
  auto next = mask.begin();
  for (engine::Group& group : groups) {
    for (float& weight : group.write(columns::kMask)) weight = *next++;
  }
  return groups;
}

TEST(TrainSft, SampleMeanIsTheMeanOfTheSamplesOwnMeans) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 0);
  const auto logprobs = logprobs_of(model);
  double sum = 0;
  size_t first = 0;
  for (const size_t actions : {3, 1, 5, 1, 4, 2, 2}) {
    sum += std::accumulate(logprobs.begin() + first, logprobs.begin() + first + actions, 0.0) / static_cast<double>(actions);
    first += actions;
  }
  const TrainSftParams params{.model = "actor", .loss = SftLoss::kSampleMean};
  EXPECT_NEAR(metric(run_node<TrainSft>(params, {{"actor", model}}, mixed_groups(), {1, 2, 1}).metrics, "policy/loss"), -sum / 7,
              1e-5);
}

TEST(TrainSft, TheMaskWeighsActions) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 0);
  const auto logprobs = logprobs_of(model);
  const auto groups = masked({1, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0});
  const double by_token = -(logprobs[0] + 0.5 * logprobs[1] + 2 * logprobs[16]) / 3.5;
  const double by_sample = -((logprobs[0] + 0.5 * logprobs[1]) / 1.5 + logprobs[16]) / 2;
  const auto loss = [&](SftLoss of) {
    return metric(run_node<TrainSft>(TrainSftParams{.model = "actor", .loss = of}, {{"actor", model}}, groups, {2, 1, 1}).metrics,
                  "policy/loss");
  };
  EXPECT_NEAR(loss(SftLoss::kTokenMean), by_token, 1e-5);
  EXPECT_NEAR(loss(SftLoss::kSampleMean), by_sample, 1e-5);
}

TEST(TrainSft, TheStepOfAnIterationHasItsLearningRateAndTheMetricSaysSo) {
  const TinyFolder folder;
  // Iteration 0 of a schedule whose warm-up begins at an eighth.
  const engine::ValueSchedule schedule{
      .shape = engine::ScheduleShape::kWsd, .from = 1.0, .to = 0.125, .iterations = 9, .warmup = 4};
  const std::shared_ptr<LanguageModel> constant = trainable_actor(folder, 0.125);
  const std::shared_ptr<LanguageModel> scheduled = std::make_shared<TrainedLanguageModel>(
      "actor", folder.path(), models::load_transformer(folder.path(), {.random_init = true, .seed = 1, .trainable = true}),
      Training{.optimizer = {.learning_rate = 1.0}, .learning_rate = schedule}, engine::ModelVersions{.readable = 1});
  const auto train = [](const std::shared_ptr<LanguageModel>& model) {
    return run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups()).metrics;
  };
  EXPECT_EQ(metric(train(scheduled), "policy/learning_rate"), 0.125);
  EXPECT_EQ(metric(train(constant), "policy/learning_rate"), 0.125);
  EXPECT_EQ(all_weights(*scheduled), all_weights(*constant));
}

// An id beyond the vocabulary cannot be computed.
TEST(TrainSft, SamplesWithoutWeightAreNotComputed) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 1e-2);
  engine::Group group = group_of({{{5, 17, 42}, 2}, {{5, 100000, 42}, 2}});
  std::ranges::copy(std::vector<float>{1, 1, 0, 0}, group.write(columns::kMask).begin());
  run_node<TrainSft>(kParams, {{"actor", model}}, {group});
  EXPECT_EQ(trained(*model).optimizer().steps(), 1);
}

TEST(TrainSft, TheStepDoesNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const auto packed = trainable_actor(folder, 1e-3), single = trainable_actor(folder, 1e-3);
  const auto of_packed = run_node<TrainSft>(kParams, {{"actor", packed}}, mixed_groups());
  const auto of_single = run_node<TrainSft>(kParams, {{"actor", single}}, mixed_groups(), {1, 1, 1, 1});
  EXPECT_NEAR(metric(of_packed.metrics, "policy/grad_norm"), metric(of_single.metrics, "policy/grad_norm"),
              1e-5 * metric(of_packed.metrics, "policy/grad_norm"));
  EXPECT_THAT(all_weights(*packed), ::testing::Pointwise(::testing::FloatNear(1e-5f), all_weights(*single)));
}

TEST(TrainSft, StepsLowerTheLossOfWhatIsTrainedOn) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 1e-2);
  const auto loss = [&] {
    return metric(run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups()).metrics, "policy/loss");
  };
  const double first = loss();
  for (int step = 0; step < 10; ++step) loss();
  EXPECT_LT(loss(), first / 2);
}

TEST(TrainSft, ALearningRateOfZeroChangesNothing) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 0);
  const auto before = all_weights(*model);
  run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups());
  EXPECT_EQ(all_weights(*model), before);
}

TEST(TrainSft, AnIterationWithoutActionsMakesNoStep) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 1e-2);
  const auto before = all_weights(*model);
  run_node<TrainSft>(kParams, {{"actor", model}}, {group_of({{{1, 2, 3}, 0}}), group_of({})});
  EXPECT_EQ(all_weights(*model), before);
  EXPECT_EQ(trained(*model).optimizer().steps(), 0);
}

TEST(TrainSft, WeightsThatAreNotFiniteAreAnErrorThatSaysSo) {
  const TinyFolder folder;
  const auto model = trainable_actor(folder, 1e-2);
  shift_weights(*model, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(
      [&] {
        run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups());
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("loss is not finite (nan)")));
}

}  // namespace
}  // namespace sluice::nodes::train_sft_test
