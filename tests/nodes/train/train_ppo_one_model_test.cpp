#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "nodes/train/train_ppo.h"
#include "tests/nodes/ppo_experience.h"

namespace sluice::nodes::train_ppo_one_model_test {
namespace {

using engine::Group;
using testing::actions_of;
using testing::distance;
using testing::experience;
using testing::first_gradient;
using testing::kBeta1;
using testing::norm;
using testing::Pair;
using testing::ppo;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::trained;

// One model that is actor and critic.
class OneModel : public ::testing::Test {
 protected:
  static std::shared_ptr<LanguageModel> model(const TinyFolder& folder) {
    return tiny_model(folder.path(),
                      {.both_heads = true, .optimizer = models::AdamWOptions{.learning_rate = 0, .beta1 = kBeta1}});
  }

  // The gradient of one step with some weight of the value loss; nothing: without a critic.
  static std::vector<float> gradient(const TinyFolder& folder, std::optional<double> coefficient) {
    const auto both = model(folder);
    const Pair pair{both, both};
    TrainPpoParams params = ppo(coefficient.has_value());
    if (coefficient) params.critic = params.actor, params.value_coefficient = *coefficient;
    run_node<TrainPpo>(params, {{"actor", both}}, experience(pair), {1, 1, 2});
    EXPECT_EQ(trained(*both).optimizer().steps(), 1);
    return first_gradient(*both);
  }
};

TEST_F(OneModel, IsTrainedOnTheSumOfBothLosses) {
  const TinyFolder folder;
  const auto policy = gradient(folder, {}), none = gradient(folder, 0.0), half = gradient(folder, 0.5),
             twice = gradient(folder, 2);
  EXPECT_LT(distance(policy, none), 1e-5 * norm(policy));
  std::vector<float> line;
  for (size_t i = 0; i < none.size(); ++i) line.push_back(none[i] + 4 * (half[i] - none[i]));
  EXPECT_GT(distance(twice, none), 0.01);
  EXPECT_LT(distance(twice, line), 1e-4 * norm(twice));
}

TEST_F(OneModel, HasTheGradientThatACriticOfItsOwnWouldHave) {
  const TinyFolder folder;
  const auto both = model(folder);
  const Pair pair{both, both};
  const auto alone = gradient(folder, {}), with_values = gradient(folder, 1.0);
  std::vector<float> of_values;
  for (size_t i = 0; i < alone.size(); ++i) of_values.push_back(with_values[i] - alone[i]);
  // Plain autograd through all samples, one by one.
  const models::Weights& weights = both->forward().transformer().weights();
  const std::vector<Group> groups = experience(pair);
  for (const Group& group : groups) {
    const auto tokens = group.read(columns::kTokens);
    const auto returns = group.read(columns::kReturns);
    const auto samples = group.layout.tokens_by_sample(), actions = group.layout.actions_by_sample();
    for (size_t s = 0; s < samples.size(); ++s) {
      const std::vector<int64_t> own(tokens.begin() + samples[s].begin, tokens.begin() + samples[s].end);
      const std::vector<int64_t> offsets{0, static_cast<int64_t>(own.size())};
      const at::Tensor values =
          at::matmul(both->forward().transformer().hidden_states(at::tensor(own), offsets), weights.value_head[0]);
      at::Tensor loss = at::zeros({});
      for (size_t a = actions[s].begin; a < actions[s].end; ++a) {
        const int64_t before = group.layout.action_tokens[a] - static_cast<int64_t>(samples[s].begin) - 1;
        loss = loss.add(values[before].sub(returns[a]).square().mul(0.5));
      }
      if (loss.requires_grad()) loss.backward();  // a sample may have no action
    }
  }
  std::vector<float> expected;
  for (const auto& [name, tensor] : weights.named()) {
    const auto* gradient = tensor.grad().const_data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) expected.push_back(gradient[i] / static_cast<float>(actions_of(groups)));
  }
  EXPECT_LT(distance(of_values, expected), 1e-3 * norm(expected));
}

}  // namespace
}  // namespace sluice::nodes::train_ppo_one_model_test
