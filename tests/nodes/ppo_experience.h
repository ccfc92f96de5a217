#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/values.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/train/train_ppo.h"
#include "tests/nodes/tiny_model.h"

/// Models, parameters and experience for tests of train_ppo.
namespace sluice::nodes::testing {

inline constexpr double kBeta1 = 0.9;

struct Pair {
  std::shared_ptr<LanguageModel> actor, critic;

  Models models() const { return {{"actor", actor}, {"critic", critic}}; }
};

inline Pair trainable(const TinyFolder& folder, double learning_rate) {
  const models::AdamWOptions optimizer{.learning_rate = learning_rate, .beta1 = kBeta1};
  return {tiny_model(folder.path(), {.optimizer = optimizer}),
          tiny_model(folder.path(), {.value_head = true, .optimizer = optimizer})};
}

inline TrainPpoParams ppo(bool with_critic = true) {
  TrainPpoParams params;
  params.actor = "actor";
  if (with_critic) params.critic = "critic";
  params.objective.object = std::make_shared<PpoClip>(PpoClipParams{});
  params.value_objective.object = std::make_shared<ValueClip>(ValueClipParams{});
  return params;
}

inline TrainPpoParams reinforce() {
  TrainPpoParams params = ppo(/*with_critic=*/false);
  params.objective = {.type = "reinforce", .object = std::make_shared<Reinforce>(ReinforceParams{})};
  return params;
}

// Fills an action column of all groups from `entries`, one after the other.
inline void fill(std::vector<engine::Group>& groups, const engine::Column<float>& column, const std::vector<float>& entries) {
  auto next = entries.begin();
  for (engine::Group& group : groups) {
    for (float& entry : group.write(column)) entry = *next++;
  }
}

inline size_t actions_of(const std::vector<engine::Group>& groups) {
  size_t actions = 0;
  for (const engine::Group& group : groups) actions += group.layout.actions();
  return actions;
}

// Some advantage for each action, of both signs.
inline std::vector<float> wave(size_t count, double frequency) {
  std::vector<float> entries;
  for (size_t i = 0; i < count; ++i) entries.push_back(static_cast<float>(std::sin(frequency * static_cast<double>(i + 1))));
  return entries;
}

// What the nodes before the training write, under the models as they are. The last action has the advantage `last` if one is
// given.
inline std::vector<engine::Group> experience(const Pair& pair, std::optional<float> last = {}) {
  std::vector<engine::Group> groups = mixed_groups();
  const size_t actions = actions_of(groups);
  const auto logprobs = run_node<Logprobs>(LogprobsParams{.model = "actor"}, pair.models(), groups);
  const auto values = run_node<Values>(ValuesParams{.model = "critic"}, pair.models(), groups);
  fill(groups, columns::kRolloutLogprobs, floats(logprobs, "reference_logprobs"));
  fill(groups, columns::kValues, floats(values, "values"));
  std::vector<float> advantages = wave(actions, 2.0);
  advantages.back() = last.value_or(advantages.back());
  fill(groups, columns::kAdvantages, advantages);
  fill(groups, columns::kReturns, wave(actions, 0.7));
  return groups;
}

// After the first step the mean of the gradient is (1 - beta1) times the gradient.
inline std::vector<float> first_gradient(LanguageModel& model) {
  std::vector<float> all;
  const models::AdamW& optimizer = trained(model).optimizer();
  for (const auto& [name, tensor] : optimizer.parameters().views(optimizer.first_moments())) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
      all.push_back(tensor.const_data_ptr<float>()[i] / static_cast<float>(1 - kBeta1));
  }
  return all;
}

inline double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b.at(i));
  return norm(difference);
}

}  // namespace sluice::nodes::testing
