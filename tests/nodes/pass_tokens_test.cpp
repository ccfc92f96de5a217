#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/values.h"
#include "nodes/objectives/gspo.h"
#include "nodes/objectives/preference/dpo.h"
#include "nodes/scorers/reward_model.h"
#include "nodes/train/train_dpo.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_reward.h"
#include "nodes/train/train_sft.h"
#include "tests/nodes/ppo_experience.h"
#include "tests/nodes/tiny_model.h"

// What [budget] pass_tokens changes: nothing of what is computed without a gradient, rounding of gradients.
namespace sluice::nodes::pass_tokens_test {
namespace {

using engine::Group;
using testing::actions_of;
using testing::distance;
using testing::fill;
using testing::first_gradient;
using testing::floats;
using testing::metric;
using testing::Models;
using ::testing::NanSensitiveFloatEq;
using testing::norm;
using ::testing::Pointwise;
using testing::ppo;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::wave;

constexpr int64_t kLongest = 40;                    // tokens of a sample
const std::vector<int64_t> kPasses{kLongest, 111};  // the smaller is less than most pairs

// 8 groups of 3 samples of all lengths up to the longest, some without an action.
std::vector<Group> random_groups() {
  RandomStream random(7, 0);
  std::vector<Group> groups;
  for (int g = 0; g < 8; ++g) {
    std::vector<testing::TinySample> samples;
    for (int s = 0; s < 3; ++s) {
      const uint64_t length = g == 0 && s == 0 ? kLongest : 2 + random.below(kLongest - 1);
      testing::TinySample sample{.tokens = {}, .actions = static_cast<int64_t>(random.below(length))};
      for (uint64_t t = 0; t < length; ++t) sample.tokens.push_back(static_cast<int64_t>(random.below(90)));
      samples.push_back(sample);
    }
    groups.push_back(testing::group_of(samples));
  }
  return groups;
}

std::vector<Group> experience() {
  std::vector<Group> groups = random_groups();
  const size_t actions = actions_of(groups);
  fill(groups, columns::kRolloutLogprobs, std::vector<float>(actions, -4.5f));
  fill(groups, columns::kReferenceLogprobs, std::vector<float>(actions, -4.4f));
  fill(groups, columns::kAdvantages, wave(actions, 2.0));
  fill(groups, columns::kReturns, wave(actions, 0.7));
  fill(groups, columns::kValues, wave(actions, 0.3));
  for (Group& group : groups) std::ranges::copy(std::vector<float>{1, 3, 2}, group.write(columns::kScore).begin());
  return groups;
}

class PassTokens : public ::testing::Test {
 protected:
  template <class T, class P>
  void expect_same_bits(const P& params, const std::shared_ptr<LanguageModel>& model, const std::string& column) {
    const Models models{{model->name(), model}};
    const auto at_once = floats(run_node<T>(params, models, random_groups()), column);
    for (const int64_t pass : kPasses) {
      const auto cut = floats(run_node<T>(params, models, random_groups(), {}, pass), column);
      EXPECT_THAT(cut, Pointwise(NanSensitiveFloatEq(), at_once)) << pass;
      EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(cut)), std::as_bytes(std::span(at_once)))) << pass;
    }
  }

  std::shared_ptr<LanguageModel> trained(bool value_head = false, bool both_heads = false) const {
    return tiny_model(folder_.path(), {.value_head = value_head,
                                       .both_heads = both_heads,
                                       .optimizer = models::AdamWOptions{.learning_rate = 0, .beta1 = testing::kBeta1}});
  }

  // The gradients of the models that `make` gives, in passes of every size, and the loss.
  template <class T, class P, class Make>
  void expect_same_gradients(const P& params, const Make& make, const char* loss) {
    const Models at_once = make();
    const double expected = metric(run_node<T>(params, at_once, experience()).metrics, loss);
    for (const int64_t pass : kPasses) {
      const Models cut = make();
      EXPECT_NEAR(metric(run_node<T>(params, cut, experience(), {}, pass).metrics, loss), expected, 1e-6);
      for (const auto& [name, model] : at_once) {
        const auto gradient = gradient_of(model);
        EXPECT_GT(norm(gradient), 1e-3);
        EXPECT_LT(distance(gradient_of(cut.at(name)), gradient), 1e-6 * norm(gradient)) << name << ", " << pass;
      }
    }
  }

  static std::vector<float> gradient_of(const std::shared_ptr<engine::Model>& model) {
    return first_gradient(*std::static_pointer_cast<LanguageModel>(model));
  }

  const TinyFolder folder_;
};

TEST_F(PassTokens, ChangesNoBitOfLogProbabilities) {
  for (const auto precision : {models::Precision::kFloat32, models::Precision::kBfloat16})
    expect_same_bits<Logprobs>(LogprobsParams{.model = "actor"}, tiny_model(folder_.path(), {.precision = precision}),
                               "reference_logprobs");
}

TEST_F(PassTokens, ChangesNoBitOfValues) {
  expect_same_bits<Values>(ValuesParams{.model = "critic"}, tiny_model(folder_.path(), {.value_head = true}), "values");
}

TEST_F(PassTokens, ChangesNoBitOfScores) {
  const auto model = tiny_model(folder_.path(), {.value_head = true});
  expect_same_bits<RewardModel>(RewardModelParams{.model = "critic"}, model, "score");
}

TEST_F(PassTokens, ChangesNoBitOfTheRewardsOfSteps) {
  const auto model = tiny_model(folder_.path(), {.value_head = true});
  const RewardModelParams by_step{.model = "critic", .level = RewardLevel::kStep, .separator = "a"};
  expect_same_bits<RewardModel>(by_step, model, "step_rewards");
}

TEST_F(PassTokens, RoundsTheGradientsOfSft) {
  for (const SftLoss loss : {SftLoss::kTokenMean, SftLoss::kSampleMean}) {
    expect_same_gradients<TrainSft>(
        TrainSftParams{.model = "actor", .loss = loss},
        [&] {
          return Models{{"actor", trained()}};
        },
        "policy/loss");
  }
}

TEST_F(PassTokens, RoundsTheGradientsOfAPolicyAndItsCritic) {
  const auto make = [&] { return Models{{"actor", trained()}, {"critic", trained(true)}}; };
  expect_same_gradients<TrainPpo>(ppo(), make, "policy/loss");
  expect_same_gradients<TrainPpo>(ppo(), make, "value/loss");
}

// The ratio of GSPO is a sample's, and its samples count alike.
TEST_F(PassTokens, RoundsTheGradientsOfAnObjectiveOfWholeSamples) {
  TrainPpoParams params = ppo(/*with_critic=*/false);
  params.objective = {.type = "gspo", .object = std::make_shared<Gspo>(GspoParams{}), .parts = {}};
  expect_same_gradients<TrainPpo>(
      params,
      [&] {
        return Models{{"actor", trained()}};
      },
      "policy/loss");
}

TEST_F(PassTokens, RoundsTheGradientsOfOneModelWithBothHeads) {
  TrainPpoParams params = ppo();
  params.critic = params.actor;
  expect_same_gradients<TrainPpo>(
      params,
      [&] {
        return Models{{"actor", trained(false, true)}};
      },
      "policy/loss");
}

TEST_F(PassTokens, RoundsTheGradientsOfMiniBatchesWithOldLogProbabilitiesOfTheirOwn) {
  TrainPpoParams params = ppo(/*with_critic=*/false);
  params.recompute_old_logprobs = true;
  params.mini_batches = 2;
  expect_same_gradients<TrainPpo>(
      params,
      [&] {
        return Models{{"actor", trained()}};
      },
      "policy/loss");
}

// In the smallest passes most pairs do not fit: each of their samples is a pass then.
TEST_F(PassTokens, RoundsTheGradientsOfPairs) {
  TrainDpoParams params{.model = "actor",
                        .objective = {.type = "dpo", .object = std::make_shared<Dpo>(DpoParams{.beta = 0.5}), .parts = {}}};
  params.nll_coefficient = 0.1;
  expect_same_gradients<TrainDpo>(
      params,
      [&] {
        return Models{{"actor", trained()}};
      },
      "policy/loss");
}

TEST_F(PassTokens, RoundsTheGradientsOfARewardModel) {
  expect_same_gradients<TrainReward>(
      TrainRewardParams{.model = "critic", .centre_coefficient = 0.01},
      [&] {
        return Models{{"critic", trained(true)}};
      },
      "reward_model/loss");
}

}  // namespace
}  // namespace sluice::nodes::pass_tokens_test
