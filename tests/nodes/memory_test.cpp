#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "base/numbers/random.h"
#include "models/forward/activation_bytes.h"
#include "models/memory/tensor_memory.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "nodes/forward/values.h"
#include "nodes/models/language_model_type.h"
#include "nodes/models/passes/threads.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/train/train_ppo.h"
#include "nodes/train/train_sft.h"
#include "tests/models/dense_reference.h"
#include "tests/nodes/ppo_experience.h"
#include "tests/nodes/tiny_model.h"

// What the plan predicts against what LibTorch reports.
namespace sluice::nodes::memory_test {
namespace {

using models::ActivationBytes;
using models::ModelConfig;
using models::TensorMemory;
using testing::Models;
using testing::run_node;

struct Case {
  const char* name;
  ModelConfig config;
};

ModelConfig config_of(int64_t vocabulary, int64_t hidden, int64_t intermediate, int64_t layers, int64_t heads, int64_t kv_heads,
                      bool tied = false, bool bias = false) {
  ModelConfig config;
  config.vocab_size = vocabulary, config.hidden_size = hidden, config.intermediate_size = intermediate;
  config.layers = layers, config.heads = heads, config.kv_heads = kv_heads, config.head_dim = 16;
  config.max_positions = 4096;
  config.tied_embeddings = tied, config.qkv_bias = bias;
  return config;
}

const std::vector<Case> kCases{
    {"grouped queries", config_of(300, 64, 160, 2, 4, 2)},
    {"tied", config_of(300, 64, 160, 3, 4, 4, true)},
    {"biases", config_of(128, 64, 200, 4, 4, 1, false, true)},
    {"large vocabulary", config_of(6000, 48, 96, 2, 3, 3)},
    {"large vocabulary, tied", config_of(6000, 64, 128, 2, 4, 2, true)},
    {"wide attention", config_of(200, 32, 16, 2, 16, 8)},
    {"one layer, wide network", config_of(100, 32, 512, 1, 2, 2)},
};

std::shared_ptr<LanguageModel> model_of(const ModelConfig& config, bool value_head, bool trained) {
  models::Weights weights = models::reference::random_weights(config, 0.05);
  if (value_head) {
    weights.head.reset();
    weights.value_head = at::randn({1, config.hidden_size}, at::kFloat);
  }
  if (trained) {
    for (auto& [name, tensor] : weights.named()) tensor.requires_grad_(true);
  }
  const std::string name = value_head ? "critic" : "actor";
  const models::Transformer transformer(config, std::move(weights));
  if (!trained) return std::make_shared<FrozenLanguageModel>(name, "", transformer, engine::ModelVersions{.readable = 1});
  const Training training{.optimizer = {.learning_rate = 1e-4, .clip_grad_norm = 1.0}};
  return std::make_shared<TrainedLanguageModel>(name, "", transformer, training, engine::ModelVersions{.readable = 1});
}

// Every token but a sample's first is an action.
engine::Group group_of(const std::vector<int64_t>& lengths, const std::function<int64_t()>& next_token) {
  engine::Group group;
  for (const int64_t tokens : lengths) group.layout.add_sample(tokens, tokens - 1);
  group.layout.end_group();
  for (int64_t& token : group.write(columns::kTokens)) token = next_token();
  for (const auto& column : {columns::kAdvantages, columns::kRolloutLogprobs, columns::kReturns, columns::kValues})
    std::ranges::fill(group.write(column), 0.1f);
  return group;
}

engine::Group group_of(const std::vector<int64_t>& lengths, int64_t vocabulary) {
  return group_of(lengths, [vocabulary, next = int64_t{0}]() mutable { return next++ * 7 % vocabulary; });
}

// Two micro-batches of `tokens` tokens, each of one sample or four.
std::vector<engine::Group> groups_of(int64_t tokens, int64_t vocabulary) {
  return {group_of({tokens}, vocabulary), group_of(std::vector<int64_t>(4, tokens / 4), vocabulary)};
}

TrainPpoParams ppo_params(const std::string& critic) {
  TrainPpoParams params{.actor = "actor", .critic = critic};
  params.objective.object = std::make_shared<PpoClip>(PpoClipParams{});
  params.value_objective.object = std::make_shared<ValueClip>(ValueClipParams{});
  return params;
}

// The peak of tensors beside those that live before and after, on a thread with two cores.
template <class T, class P>
int64_t measured(const P& params, const Models& models, const std::vector<engine::Group>& groups,
                 int64_t pass_tokens = engine::NodeResources::kNoLimit) {
  TensorMemory memory;
  std::thread([&] {
    use_threads(2);
    memory.watch_this_thread();
    run_node<T>(params, models, groups, std::vector<size_t>(groups.size(), 1), pass_tokens);
  }).join();
  return memory.take_peak();
}

void expect_close(int64_t measured, int64_t predicted, const std::string& what) {
  const double ratio = static_cast<double>(predicted) / static_cast<double>(measured);
  EXPECT_GE(predicted, measured) << what;
  EXPECT_LE(ratio, 1.1) << what;
}

class ActivationBytesTest : public ::testing::TestWithParam<int64_t> {
 protected:
  int64_t tokens() const { return GetParam(); }

  int64_t predicted(const ModelConfig& config, bool training, bool value_head) const {
    return models::activation_bytes(
               config,
               {.training = training, .value_head = value_head, .tokens = tokens(), .longest_sample = tokens(), .threads = 2})
        .tensors;
  }

  std::string label(const Case& c, const char* node) const {
    return std::string(c.name) + ", " + node + ", " + std::to_string(tokens());
  }
};

TEST_P(ActivationBytesTest, OfAForwardPassAreWhatThePlanPredicts) {
  for (const Case& c : kCases) {
    const auto groups = groups_of(tokens(), c.config.vocab_size);
    const auto actor = model_of(c.config, false, false), critic = model_of(c.config, true, false);
    expect_close(measured<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", actor}}, groups),
                 predicted(c.config, false, false), label(c, "logprobs"));
    expect_close(measured<Values>(ValuesParams{.model = "critic"}, {{"critic", critic}}, groups),
                 predicted(c.config, false, true), label(c, "values"));
  }
}

TEST_P(ActivationBytesTest, OfATrainingPassAreWhatThePlanPredicts) {
  for (const Case& c : kCases) {
    const auto groups = groups_of(tokens(), c.config.vocab_size);
    const auto model = model_of(c.config, false, true), actor = model_of(c.config, false, true);
    expect_close(measured<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", model}}, groups),
                 predicted(c.config, true, false), label(c, "train_sft"));
    expect_close(measured<TrainPpo>(ppo_params(""), {{"actor", actor}}, groups), predicted(c.config, true, false),
                 label(c, "train_ppo"));
  }
}

TEST_P(ActivationBytesTest, OfACriticsTrainingAreWhatThePlanPredicts) {
  for (const Case& c : kCases) {
    const auto actor = model_of(config_of(c.config.vocab_size, 16, 16, 1, 1, 1), false, true),
               critic = model_of(c.config, true, true);
    const Models models{{"actor", actor}, {"critic", critic}};
    const auto both = measured<TrainPpo>(ppo_params("critic"), models, groups_of(tokens(), c.config.vocab_size));
    const int64_t of_actor = predicted(actor->forward().transformer().config(), true, false);
    expect_close(both, std::max(of_actor, predicted(c.config, true, true)), label(c, "critic of train_ppo"));
  }
}

class ActivationBytesOfPasses : public ActivationBytesTest {};

// Micro-batches of 3 and 6 passes, one of which is full.
TEST_P(ActivationBytesOfPasses, AreThoseOfAPassHoweverManyAMicroBatchHas) {
  for (const Case& c : kCases) {
    const int64_t all = tokens(), half = all / 2;
    const std::vector<engine::Group> groups{group_of({all, half, half, half}, c.config.vocab_size),
                                            group_of({half + 1, all, half + 1, all, half + 1, half + 1}, c.config.vocab_size)};
    const auto reference = model_of(c.config, false, false), sft = model_of(c.config, false, true),
               actor = model_of(c.config, false, true);
    expect_close(measured<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", reference}}, groups, all),
                 predicted(c.config, false, false), label(c, "logprobs"));
    expect_close(measured<TrainSft>(TrainSftParams{.model = "actor"}, {{"actor", sft}}, groups, all),
                 predicted(c.config, true, false), label(c, "train_sft"));
    expect_close(measured<TrainPpo>(ppo_params(""), {{"actor", actor}}, groups, all), predicted(c.config, true, false),
                 label(c, "train_ppo"));
  }
}

// 10,752 tokens in a model of 4 million parameters: a group, and what is computed at once is the longest sample. Some tokens are
// far more frequent than others, as in text.
TEST(Passes, AGroupOf16SamplesOfUpTo2048TokensTrainsInPassesOf2048) {
  ModelConfig config = config_of(97, 256, 1024, 4, 8, 8);
  config.head_dim = 32;
  std::vector<int64_t> lengths(16, 512);
  lengths[3] = 2048, lengths[5] = lengths[9] = 1024;
  RandomStream random(1, 0);
  const auto next_token = [&] { return static_cast<int64_t>(97 * random.uniform() * random.uniform()); };
  const std::vector<engine::Group> groups{group_of(lengths, next_token)};
  const auto weights = models::reference::random_weights(config, 0.05);
  const auto train = [&](int64_t pass_tokens, std::vector<float>& gradient) {
    models::Weights own = weights.clone();
    for (auto& [name, tensor] : own.named()) tensor.requires_grad_(true);
    const Training training{.optimizer = {.learning_rate = 0, .beta1 = testing::kBeta1}};
    const auto model = std::make_shared<TrainedLanguageModel>("actor", "", models::Transformer(config, std::move(own)), training,
                                                              engine::ModelVersions{.readable = 1});
    const int64_t peak = measured<TrainPpo>(ppo_params(""), {{"actor", model}}, groups, pass_tokens);
    gradient = testing::first_gradient(*model);
    return peak;
  };

  std::vector<float> at_once, in_passes;
  train(engine::NodeResources::kNoLimit, at_once);
  const int64_t peak = train(2048, in_passes);
  const auto predicted =
      models::activation_bytes(config, {.training = true, .tokens = 2048, .longest_sample = 2048, .threads = 2}).tensors;
  EXPECT_LE(static_cast<double>(peak), 1.05 * static_cast<double>(predicted));
  EXPECT_GT(testing::norm(at_once), 1e-3);
  EXPECT_LT(testing::distance(in_passes, at_once), 1e-6 * testing::norm(at_once));
}

INSTANTIATE_TEST_SUITE_P(Tokens, ActivationBytesTest, ::testing::Values(64, 500, 4096));
INSTANTIATE_TEST_SUITE_P(Tokens, ActivationBytesOfPasses, ::testing::Values(64, 500));

}  // namespace
}  // namespace sluice::nodes::memory_test
