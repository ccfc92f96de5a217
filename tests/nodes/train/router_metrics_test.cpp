#include "nodes/train/router_metrics.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/layers/feed_forward/experts.h"
#include "nodes/columns/columns.h"
#include "nodes/objectives/preference/simpo.h"
#include "nodes/train/train_dpo.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_reward.h"
#include "nodes/train/train_sft.h"
#include "tests/nodes/ppo_experience.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::router_metrics_test {
namespace {

using engine::Group;
using testing::distance;
using testing::first_gradient;
using testing::metric;
using testing::mixed_groups;
using testing::Models;
using testing::norm;
using testing::ppo;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinyOptions;

constexpr int64_t kPassTokens = 8;  // less than most pairs have
const std::vector<size_t> kApart{1, 1, 1, 1};

// What is told of routers, of every model.
std::map<std::string, double> told(const engine::NodeOutcome& outcome) {
  std::map<std::string, double> of_routers;
  for (const auto& [name, value] : outcome.metrics) {
    if (name.find("router/") != std::string::npos) of_routers[name] = value;
  }
  return of_routers;
}

std::vector<Group> scored_groups() {
  std::vector<Group> groups = mixed_groups();
  const size_t actions = testing::actions_of(groups);
  for (Group& group : groups) {
    float score = 0;
    for (float& entry : group.write(columns::kScore)) entry = score++;
  }
  testing::fill(groups, columns::kRolloutLogprobs, std::vector<float>(actions, -4.5f));
  testing::fill(groups, columns::kAdvantages, testing::wave(actions, 2.0));
  testing::fill(groups, columns::kReturns, testing::wave(actions, 0.7));
  testing::fill(groups, columns::kValues, testing::wave(actions, 0.3));
  return groups;
}

class RoutersTold : public ::testing::Test {
 protected:
  RoutersTold() { testing::make_mixture(folder_); }

  std::shared_ptr<LanguageModel> mixture(TinyOptions options = {}) const {
    options.optimizer = models::AdamWOptions{.learning_rate = 0, .beta1 = testing::kBeta1};
    return tiny_model(folder_.path(), options);
  }

  // All metrics are the same to the bit, and gradients to rounding, in whatever passes and micro-batches.
  template <class T, class P>
  void expect_same(const P& params, const std::function<Models(double aux_loss)>& make, size_t metrics = 6) {
    std::map<std::string, std::vector<float>> without;
    for (const double aux_loss : {0.0, 0.5}) {
      const Models whole = make(aux_loss), cut = make(aux_loss);
      const auto expected = told(run_node<T>(params, whole, scored_groups()));
      EXPECT_EQ(expected.size(), metrics);
      EXPECT_EQ(told(run_node<T>(params, cut, scored_groups(), kApart, kPassTokens)), expected);
      for (const auto& [name, model] : whole) {
        const auto gradient = gradient_of(model);
        EXPECT_LT(distance(gradient_of(cut.at(name)), gradient), 1e-5 * norm(gradient)) << name;
        if (aux_loss == 0) without[name] = gradient;
        if (aux_loss > 0) EXPECT_GT(distance(without[name], gradient), 1e-3 * norm(gradient)) << name;
      }
    }
  }

  static std::vector<float> gradient_of(const std::shared_ptr<engine::Model>& model) {
    return first_gradient(*std::static_pointer_cast<LanguageModel>(model));
  }

  const TinyFolder folder_;
};

TEST_F(RoutersTold, SftTellsTheSameInEveryPass) {
  for (const SftLoss loss : {SftLoss::kTokenMean, SftLoss::kSampleMean}) {
    expect_same<TrainSft>(TrainSftParams{.model = "actor", .loss = loss}, [&](double aux_loss) {
      return Models{{"actor", mixture({.router_aux_loss = aux_loss})}};
    });
  }
}

TEST_F(RoutersTold, APolicyAndItsCriticTellTheSameInEveryPass) {
  const auto make = [&](double aux_loss) {
    return Models{{"actor", mixture({.router_aux_loss = aux_loss})},
                  {"critic", mixture({.value_head = true, .router_aux_loss = aux_loss})}};
  };
  expect_same<TrainPpo>(ppo(), make, 2 * 6);
  TrainPpoParams params = ppo();
  params.epochs = 2, params.mini_batches = 2, params.recompute_old_logprobs = true;
  expect_same<TrainPpo>(params, make, 2 * 6);
}

TEST_F(RoutersTold, PairsTellTheSameInEveryPass) {
  TrainDpoParams params{.model = "actor", .objective = {}};
  params.objective = {.type = "simpo", .object = std::make_shared<Simpo>(SimpoParams{}), .parts = {}};
  expect_same<TrainDpo>(params, [&](double aux_loss) { return Models{{"actor", mixture({.router_aux_loss = aux_loss})}}; });
  expect_same<TrainReward>(TrainRewardParams{.model = "critic"}, [&](double aux_loss) {
    return Models{{"critic", mixture({.value_head = true, .router_aux_loss = aux_loss})}};
  });
}

// Of experts that are equally likely every token chooses the first two: 5/2 of an even spread.
void expect_known_load(LanguageModel& model) {
  const at::NoGradGuard no_gradient;
  for (const models::LayerWeights& layer : model.forward().transformer().weights().layers)
    if (layer.feed_forward.size() > models::Mlp::kLinears) layer.feed_forward[models::Experts::kRouter].weight.detach().zero_();
  engine::NodeOutcome outcome;
  {
    const at::AutoGradMode with_gradient(true);
    const std::shared_ptr<LanguageModel> handle(&model, [](LanguageModel*) {});
    outcome = run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", handle}}, mixed_groups());
  }
  EXPECT_DOUBLE_EQ(metric(outcome.metrics, "router/load_max"), 2.5);
  EXPECT_DOUBLE_EQ(metric(outcome.metrics, "router/load_max_worst_layer"), 2.5);
  EXPECT_DOUBLE_EQ(metric(outcome.metrics, "router/experts_idle"), 0.6);
  EXPECT_NEAR(metric(outcome.metrics, "router/entropy_mean"), std::log(5), 1e-6);
  EXPECT_NEAR(metric(outcome.metrics, "router/aux_loss"), 1, 1e-6);
}

TEST_F(RoutersTold, ALoadThatIsKnown) { expect_known_load(*mixture()); }

// The means are over the layers that are mixtures.
TEST_F(RoutersTold, BesideMlpsTheLoadIsThatOfTheMixtures) {
  testing::make_mixture(folder_, 5, {0});
  expect_known_load(*mixture());
}

// What is computed without training does not count, though the model is one that trains.
TEST_F(RoutersTold, OldLogProbabilitiesThatAreComputedAgainDoNotCount) {
  TrainPpoParams params = ppo(/*with_critic=*/false), again = params;
  again.recompute_old_logprobs = true;
  params.epochs = again.epochs = 2;
  const auto tells = [&](const TrainPpoParams& of) {
    return told(run_node<TrainPpo>(of, {{"actor", mixture()}}, scored_groups()));
  };
  EXPECT_EQ(tells(again), tells(params));
}

TEST_F(RoutersTold, ComputingLayersAgainCountsOnce) {
  const auto tells = [&](bool again) {
    TinyOptions options;
    options.recompute = again;
    return told(run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", mixture(options)}}, mixed_groups()));
  };
  EXPECT_EQ(tells(true), tells(false));
}

TEST_F(RoutersTold, AdaptersLeaveTheRoutersAndTellOfThem) {
  TinyOptions options;
  options.trained.lora = LoraParams{.rank = 4};
  const auto of = told(run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", mixture(options)}}, mixed_groups()));
  EXPECT_EQ(of, told(run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", mixture()}}, mixed_groups())));
}

TEST(Routers, OfADenseModelTellNothing) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}});
  EXPECT_TRUE(told(run_node<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", model}}, mixed_groups())).empty());
}

TEST(CountedActions, AreThoseOfTheSampleByTheirMask) {
  engine::Layout layout;
  layout.add_sample(4, 3);
  layout.add_sample(3, 1);
  const std::vector<float> mask{1, .5f, 0, 2};
  const std::vector<size_t> both{0, 1}, second{1};
  EXPECT_EQ(counted_actions(layout, {}, both), (std::vector<double>{3, 1}));
  EXPECT_EQ(counted_actions(layout, mask, both), (std::vector<double>{1.5, 2}));
  EXPECT_EQ(counted_actions(layout, mask, second), (std::vector<double>{2}));
}

}  // namespace
}  // namespace sluice::nodes::router_metrics_test
