#include "nodes/scorers/reward_model.h"

#include <gmock/gmock.h>

#include <limits>

#include "models/folder/folder.h"
#include "nodes/forward/values.h"
#include "tests/models/golden_models.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::reward_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using testing::group_of;
using testing::metric;
using testing::mixed_groups;
using ::testing::NanSensitiveFloatNear;
using ::testing::Pointwise;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

RewardModelParams params(RewardLevel level = RewardLevel::kSample) { return {.model = "critic", .level = level}; }

// The logits of AutoModelForSequenceClassification (transformers 5.23.0, float32) on the same folder, score.weight 0.01 * (0, 1,
// ...).
TEST(RewardModel, ScoresAreTheLogitsOfTransformers) {
  const std::filesystem::path folder = models::golden_model("llama_tied");
  auto transformer = models::load_transformer(folder, {.head = models::Head::kValue});
  float* head = transformer.weights().value_head.data_ptr<float>();
  for (int64_t h = 0; h < transformer.weights().value_head.numel(); ++h) head[h] = 0.01f * static_cast<float>(h);
  const auto model = std::make_shared<FrozenLanguageModel>("critic", folder, transformer, engine::ModelVersions{});
  const auto out = run_node<RewardModel>(
      params(), {{"critic", model}},
      {group_of({{{7, 1, 12, 3, 40, 5}, 2}, {{7, 1, 9}, 1}}), group_of({{{30}, 0}}), group_of({{{2, 2, 44, 17, 8, 8, 21}, 3}})});
  EXPECT_THAT(floats(out, "score"),
              Pointwise(FloatNear(1e-5f), std::vector<float>{0.5709995f, -0.2128177f, 1.4473969f, -0.5387980f}));
}

TEST(RewardModel, ScoresDoNotDependOnHowGroupsArePacked) {
  const TinyFolder folder;
  const testing::Models models{{"critic", tiny_model(folder.path(), {.value_head = true})}};
  const auto packed = run_node<RewardModel>(params(), models, mixed_groups());
  const auto single = run_node<RewardModel>(params(), models, mixed_groups(), {1, 1, 1, 1});
  EXPECT_THAT(floats(packed, "score"), Pointwise(FloatNear(1e-5f), floats(single, "score")));
}

// Characters are tokens, from '!' = 2 on; a space is 1 and the end of sequence 0. The value of a step is that of the token which
// ends it, so it is what `values` says of the action after it.
TEST(RewardModel, StepsHaveTheValueOfTheTokenThatEndsThem) {
  const TinyFolder folder;
  const testing::Models models{{"critic", tiny_model(folder.path(), {.value_head = true})}};
  const int64_t a = 'a' - 31, dot = '.' - 31;
  const std::vector<engine::Group> groups{group_of({{{17, a, dot, a, a, dot, 0}, 6}, {{17, a, a}, 2}})};
  const auto values = floats(run_node<Values>(ValuesParams{.model = "critic"}, models, groups), "values");
  RewardModelParams by_step = params(RewardLevel::kStep);
  by_step.separator = ".";
  const auto out = run_node<RewardModel>(by_step, models, groups);
  const auto scores = floats(run_node<RewardModel>(params(), models, groups), "score");
  EXPECT_THAT(
      floats(out, "step_rewards"),
      Pointwise(NanSensitiveFloatNear(1e-5f), std::vector<float>{kNan, values[2], kNan, kNan, values[5], kNan, kNan, scores[1]}));
  EXPECT_EQ(metric(out.metrics, "reward/step_rewards_steps_mean"), 1.5);
}

TEST(RewardModel, WithoutActionsThereAreNoSteps) {
  const TinyFolder folder;
  const testing::Models models{{"critic", tiny_model(folder.path(), {.value_head = true})}};
  EXPECT_THAT(floats(run_node<RewardModel>(params(RewardLevel::kStep), models, {group_of({{{5, 6}, 0}})}), "step_rewards"),
              ElementsAre());
}

TEST(RewardModel, ExpectsAFrozenModel) { EXPECT_TRUE(testing::needs_of<RewardModel>(params()).models.front().expects_frozen); }

}  // namespace
}  // namespace sluice::nodes::reward_model_test
