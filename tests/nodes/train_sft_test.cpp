#include "nodes/train_sft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "nodes/logprobs.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes {
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

const TrainSftParams kParams{.model = "actor"};

std::shared_ptr<LanguageModel> trainable(const TinyFolder& folder, double learning_rate) {
  return tiny_model(folder.path(), {.optimizer = models::AdamWOptions{.learning_rate = learning_rate}});
}

TEST(TrainSft, LossIsTheMeanOfMinusTheLogProbabilityOfAllActions) {
  const TinyFolder folder;
  const auto model = trainable(folder, 0);
  const auto logprobs =
      floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model}}, mixed_groups()), "reference_logprobs");
  const double mean = std::accumulate(logprobs.begin(), logprobs.end(), 0.0) / static_cast<double>(logprobs.size());
  const auto out = run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups(), {1, 2, 1});
  EXPECT_NEAR(metric(out.metrics, "loss"), -mean, 1e-5);
}

TEST(TrainSft, TheStepDoesNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const auto packed = trainable(folder, 1e-3), single = trainable(folder, 1e-3);
  const auto of_packed = run_node<TrainSft>(kParams, {{"actor", packed}}, mixed_groups());
  const auto of_single = run_node<TrainSft>(kParams, {{"actor", single}}, mixed_groups(), {1, 1, 1, 1});
  EXPECT_NEAR(metric(of_packed.metrics, "grad_norm"), metric(of_single.metrics, "grad_norm"),
              1e-5 * metric(of_packed.metrics, "grad_norm"));
  EXPECT_THAT(all_weights(*packed), ::testing::Pointwise(::testing::FloatNear(1e-5f), all_weights(*single)));
}

TEST(TrainSft, StepsLowerTheLossOfWhatIsTrainedOn) {
  const TinyFolder folder;
  const auto model = trainable(folder, 1e-2);
  const auto loss = [&] { return metric(run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups()).metrics, "loss"); };
  const double first = loss();
  for (int step = 0; step < 10; ++step) loss();
  EXPECT_LT(loss(), first / 2);
}

TEST(TrainSft, ALearningRateOfZeroChangesNothing) {
  const TinyFolder folder;
  const auto model = trainable(folder, 0);
  const auto before = all_weights(*model);
  run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups());
  EXPECT_EQ(all_weights(*model), before);
}

TEST(TrainSft, AnIterationWithoutActionsMakesNoStep) {
  const TinyFolder folder;
  const auto model = trainable(folder, 1e-2);
  const auto before = all_weights(*model);
  run_node<TrainSft>(kParams, {{"actor", model}}, {group_of({{{1, 2, 3}, 0}}), group_of({})});
  EXPECT_EQ(all_weights(*model), before);
  EXPECT_EQ(model->optimizer()->steps(), 0);
}

TEST(TrainSft, WeightsThatAreNotFiniteAreAnErrorThatSaysSo) {
  const TinyFolder folder;
  const auto model = trainable(folder, 1e-2);
  shift_weights(*model, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(
      [&] {
        run_node<TrainSft>(kParams, {{"actor", model}}, mixed_groups());
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("loss is not finite (nan)")));
}

}  // namespace
}  // namespace sluice::nodes
