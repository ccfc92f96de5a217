#include "nodes/models/language_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "models/folder/folder.h"
#include "models/memory/tensor_memory.h"
#include "nodes/forward/forward.h"
#include "nodes/models/language_model_type.h"
#include "nodes/models/model_parts.h"
#include "nodes/train/optimizer_step.h"
#include "tests/nodes/bound_model.h"
#include "tests/nodes/sampling.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::language_model_test {
namespace {

using testing::all_weights;
using testing::Bound;
using testing::dtype_entry;
using testing::entry;
using testing::first_embedding;
using ::testing::HasSubstr;
using testing::head_entry;
using testing::model_spec;
using testing::optimizer_entry;
using testing::publish;
using testing::save_model;
using testing::shift_weights;
using ::testing::SizeIs;
using testing::tiny_model;
using testing::TinyFolder;
using testing::trained;

// Embedding and head 96 x 32, two layers of q 32x32, k and v 16x32, o 32x32, gate, up and down 48x32, two norms, and the last
// norm.
constexpr int64_t kNormParameters = 2 * 2 * 32 + 32;
constexpr int64_t kParameters = 2 * 96 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32) + 32;

TEST(LanguageModelType, FactsOfAFrozenModelAreCountedFromItsConfig) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path()));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  EXPECT_EQ(bound.facts.parameters, kParameters);
  EXPECT_EQ(bound.facts.weight_bytes, 4 * kParameters);
  EXPECT_EQ(bound.facts.gradient_bytes, 0);
  EXPECT_EQ(bound.facts.optimizer_bytes, 0);
  EXPECT_EQ(bound.facts.kv_bytes_per_token, 2 * 2 * 2 * 8 * 4);  // layers, keys and values, heads, head size, bytes
  EXPECT_EQ(bound.facts.max_positions, 256);
  EXPECT_EQ(bound.facts.head, "language_model");
  EXPECT_FALSE(bound.facts.trainable);
}

TEST(LanguageModelType, AnOptimizerAddsGradientsAndTwoMoments) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3)}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  EXPECT_TRUE(bound.facts.trainable);
  EXPECT_EQ(bound.facts.gradient_bytes, 4 * kParameters);
  EXPECT_EQ(bound.facts.optimizer_bytes, 8 * kParameters);
  EXPECT_EQ(bound.facts.snapshot_bytes, 12 * kParameters);
  EXPECT_EQ(bound.facts.version_bytes, 4 * kParameters);
  EXPECT_EQ(bound.facts.folder_bytes, 4 * kParameters);
}

TEST(LanguageModelType, APassThatTrainsTakesMoreThanOneThatDoesNot) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path()));
  const auto bytes = [&](bool training, int64_t tokens, int64_t longest) {
    return bound.facts.activation_bytes({.training = training, .tokens = tokens, .longest_sample = longest});
  };
  // Two layers of gate and up, 48 wide, which the backward needs, in float32.
  EXPECT_GT(bytes(true, 512, 128), 512 * 2 * 2 * 48 * 4);
  EXPECT_GT(bytes(true, 512, 128), bytes(false, 512, 128));
  EXPECT_GT(bytes(false, 512, 128), bytes(false, 256, 128));
  EXPECT_GT(bytes(false, 512, 512), bytes(false, 512, 128));  // scratch of attention
}

// Weights, moments and gradients are tensors that live as long as the model: LibTorch's own figures are the oracle.
class ModelMemory : public ::testing::TestWithParam<bool> {
 protected:
  ModelMemory() {
    save_model(*tiny_model(folder_.path(), {.value_head = GetParam()}), folder_.path());
    bound_.emplace(model_spec(folder_.path(), {optimizer_entry(1e-3), head_entry(GetParam() ? "value" : "language_model")}));
  }

  // Live tensor bytes with the model of `usage`, after `work` on it.
  int64_t live_with(
      const engine::ModelUsage& usage, const std::function<void(LanguageModel&)>& work = [](LanguageModel&) {}) {
    int64_t live = 0;
    std::thread([&] {
      models::TensorMemory memory;
      memory.watch_this_thread();
      const auto model = std::dynamic_pointer_cast<LanguageModel>(LanguageModelType().load(bound_->params, usage));
      work(*model);
      live = memory.live();
    }).join();
    return live;
  }

  const engine::ModelFacts& facts() const { return bound_->facts; }

  static void backward(LanguageModel& model) {
    const std::vector<int64_t> tokens{5, 6, 7, 8};
    engine::Layout layout;
    layout.add_sample(4, 3);
    const RaggedSamples samples = all_samples({tokens}, layout);
    const at::Tensor outputs =
        GetParam() ? critic_values(model.forward(), samples) : policy_logprobs(model.forward(), samples, 1.0);
    accumulate_gradient(outputs.sum(), "loss");
  }

  const TinyFolder folder_;
  std::optional<Bound> bound_;
};

TEST_P(ModelMemory, OfAFrozenModelIsThatOfItsWeights) { EXPECT_EQ(live_with({.name = "actor"}), facts().weight_bytes); }

// Gradients are there from the first moment on: a backward adds to them.
TEST_P(ModelMemory, OfATrainedModelHasTheMomentsAndTheGradientsTogether) {
  const engine::ModelUsage usage{.name = "actor", .updated = true};
  const int64_t all = facts().weight_bytes + facts().optimizer_bytes + facts().gradient_bytes;
  constexpr double kIndices = 64;  // that the library's threads keep
  EXPECT_EQ(live_with(usage), all);
  EXPECT_NEAR(static_cast<double>(live_with(usage, backward)), static_cast<double>(all), kIndices);
  const auto step = [](LanguageModel& model) {
    backward(model);
    step_optimizer(trained(model), 3);
  };
  EXPECT_NEAR(static_cast<double>(live_with(usage, step)), static_cast<double>(all), kIndices);
}

TEST_P(ModelMemory, OfKeptVersionsIsACopyEach) {
  if (GetParam()) return;  // a value head is not sampled from
  // Nobody trains it: its passes read what is sampled from.
  for (const bool read : {false, true})
    EXPECT_EQ(live_with({.name = "actor", .read = read, .versions = {.readable = 1}}), facts().published_bytes);
  const auto publish_four = [](LanguageModel& model) {
    for (const int64_t version : {1, 2, 3, 4}) publish(model, version);
  };
  EXPECT_EQ(live_with({.name = "actor", .updated = true, .versions = {.readable = 3}}, publish_four),
            facts().weight_bytes + facts().optimizer_bytes + facts().gradient_bytes + 3 * facts().published_bytes);
}

INSTANTIATE_TEST_SUITE_P(ValueHead, ModelMemory, ::testing::Bool());

TEST(LanguageModelType, ABfloat16ModelIsSampledFromHalfTheBytes) {
  const TinyFolder folder;
  const Bound wide(model_spec(folder.path())),
      narrow(model_spec(folder.path(), {dtype_entry("bfloat16"), entry("init", std::string("random"))}));
  ASSERT_TRUE(narrow.params) << render(narrow.problems);
  EXPECT_EQ(narrow.facts.weight_bytes, 2 * kParameters + 2 * kNormParameters);  // which stay float32
  EXPECT_EQ(2 * narrow.facts.kv_bytes_per_token, wide.facts.kv_bytes_per_token);
  EXPECT_LT(narrow.facts.published_bytes, wide.facts.published_bytes);
  const auto model = std::dynamic_pointer_cast<LanguageModel>(
      LanguageModelType().load(narrow.params, {.name = "actor", .versions = {.readable = 1}}));
  EXPECT_EQ(model->sampled().precision(), models::Precision::kBfloat16);
  EXPECT_EQ(model->sampled().at(0).precision(), models::Precision::kBfloat16);
}

// A reference policy begins as the actor, whose weights are float32: not the last bit may differ.
TEST(LanguageModelType, AFrozenBfloat16ModelComputesWhatATrainedOneDoes) {
  const TinyFolder folder;
  save_model(*tiny_model(folder.path(), {}), folder.path());
  const Bound trained(model_spec(folder.path(), {dtype_entry("bfloat16"), optimizer_entry(1e-3)}));
  const Bound frozen(model_spec(folder.path(), {dtype_entry("bfloat16")}));
  ASSERT_TRUE(trained.params && frozen.params);
  const auto loaded = [](const Bound& bound, bool updated) {
    return std::dynamic_pointer_cast<LanguageModel>(
        LanguageModelType().load(bound.params, {.name = "actor", .updated = updated}));
  };
  const auto actor = loaded(trained, true), reference = loaded(frozen, false);
  EXPECT_EQ(reference->bytes().weights, frozen.facts.weight_bytes);
  EXPECT_LT(frozen.facts.weight_bytes, trained.facts.weight_bytes);
  const std::vector<int64_t> tokens{5, 6, 7, 8, 9, 5, 11};
  engine::Layout layout;
  layout.add_sample(4, 3);
  layout.add_sample(3, 2);
  const RaggedSamples samples = all_samples({tokens}, layout);
  const at::NoGradGuard no_gradient;
  EXPECT_TRUE(at::equal(policy_logprobs(actor->forward(), samples, 1.0), policy_logprobs(reference->forward(), samples, 1.0)));
}

TEST(LanguageModelType, AnUnknownDtypeIsRefusedByName) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path(), {dtype_entry("float16")}));
  EXPECT_FALSE(bound.params);
  ASSERT_THAT(bound.problems, SizeIs(1));
  EXPECT_THAT(bound.problems[0].message, HasSubstr("dtype"));
}

TEST(LanguageModelType, AMissingFolderIsAProblemAtTheCheckpointKey) {
  const Bound bound(model_spec("/nowhere/at/all"));
  EXPECT_FALSE(bound.params);
  ASSERT_THAT(bound.problems, SizeIs(1));
  EXPECT_EQ(bound.problems[0].where.line, 2);
  EXPECT_EQ(bound.problems[0].where.column, 14);
  EXPECT_THAT(bound.problems[0].message, HasSubstr("there is no folder /nowhere/at/all"));
}

TEST(LanguageModelType, AnOptimizerWithoutLearningRateIsRefused) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path(), {optimizer_entry(std::nullopt)}));
  EXPECT_FALSE(bound.params);
  ASSERT_THAT(bound.problems, SizeIs(1));
  EXPECT_THAT(bound.problems[0].message, HasSubstr("learning_rate"));
}

TEST(LanguageModelType, AModelThatNoNodeUpdatesIsLoadedWithoutOptimizer) {
  const TinyFolder folder;
  save_model(*tiny_model(folder.path(), {}), folder.path());
  const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3)}));
  const auto load = [&](bool updated) {
    return std::dynamic_pointer_cast<LanguageModel>(
        LanguageModelType().load(bound.params, {.name = "actor", .updated = updated}));
  };
  EXPECT_EQ(std::dynamic_pointer_cast<TrainedLanguageModel>(load(false)), nullptr);
  EXPECT_FALSE(load(false)->forward().transformer().weights().embedding.requires_grad());
  EXPECT_NE(std::dynamic_pointer_cast<TrainedLanguageModel>(load(true)), nullptr);
  EXPECT_TRUE(load(true)->forward().transformer().weights().embedding.requires_grad());
}

TEST(LanguageModel, ASavedModelLoadsWithTheSameWeightsAndTokenizer) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.seed = 5});
  const std::filesystem::path saved = folder.path() / "saved";
  save_model(*model, saved);
  const FrozenLanguageModel loaded("actor", saved, models::load_transformer(saved, {}), {});
  EXPECT_EQ(all_weights(loaded), all_weights(*model));
  EXPECT_EQ(loaded.text().tokenizer().encode("a b"), model->text().tokenizer().encode("a b"));
}

// Tokens and their log-probabilities.
std::pair<std::vector<int64_t>, std::vector<float>> said_by(const std::shared_ptr<LanguageModel>& model) {
  testing::Sampling sampling(testing::params_with(2, 6), model);
  const auto groups = sampling.run({"ab", "12+3"}, {.index = 0, .policy_version = 0});
  return {testing::tokens_of(groups), testing::logprobs_of(groups)};
}

TEST(LanguageModel, WhereOneVersionIsKeptPublishingRenewsItInPlace) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 1});
  const models::PackedWeights& weights = model->sampled().at(0);
  const float initial = first_embedding(weights);
  shift_weights(*model, 1.0f);
  EXPECT_EQ(first_embedding(weights), initial);
  publish(*model, 1);
  EXPECT_EQ(&model->sampled().at(1), &weights);
  EXPECT_EQ(first_embedding(weights), initial + 1.0f);
  EXPECT_THROW(model->sampled().at(0), InternalError);
}

// What it samples and computes is what a model with live weights would.
TEST(LanguageModel, AFrozenOneThatIsSampledFromHoldsItsMatricesOnceWhoeverReadsThem) {
  const TinyFolder folder;
  save_model(*tiny_model(folder.path(), {}), folder.path());
  const at::Tensor tokens = at::arange(5, at::kLong);
  const std::vector<int64_t> offsets{0, 5};
  for (const auto& [dtype, precision] : std::map<std::string, models::Precision>{{"float32", models::Precision::kFloat32},
                                                                                 {"bfloat16", models::Precision::kBfloat16}}) {
    SCOPED_TRACE(dtype);
    const auto live = std::make_shared<FrozenLanguageModel>("policy", folder.path(),
                                                            models::load_transformer(folder.path(), {.compute = {precision}}),
                                                            engine::ModelVersions{.readable = 1});
    const Bound bound(model_spec(folder.path(), {dtype_entry(dtype)}));
    for (const bool read : {false, true}) {
      const auto packed = std::dynamic_pointer_cast<LanguageModel>(
          LanguageModelType().load(bound.params, {.name = "policy", .read = read, .versions = {.readable = 1}}));
      EXPECT_EQ(packed->bytes().weights, bound.facts.published_bytes);
      EXPECT_EQ(said_by(packed), said_by(live));
      const auto states = [&](const LanguageModel& model) {
        return model.forward().transformer().hidden_states(tokens, offsets);
      };
      EXPECT_TRUE(states(*packed).equal(states(*live)));
    }
  }
}

TEST(LanguageModel, AModelThatNobodySamplesFromIsPublishedWithoutACopy) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 0});
  publish(*model, 1);
  EXPECT_THROW(model->sampled().at(1), InternalError);
}

TEST(LanguageModel, AKeptVersionDoesNotSeeWhatTrainingDoesAfterIt) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 2});
  const float initial = first_embedding(model->sampled().at(0));
  shift_weights(*model, 1.0f);
  EXPECT_EQ(first_embedding(model->sampled().at(0)), initial);
  publish(*model, 1);
  shift_weights(*model, 1.0f);
  EXPECT_EQ(first_embedding(model->sampled().at(0)), initial);
  EXPECT_EQ(first_embedding(model->sampled().at(1)), initial + 1.0f);
}

TEST(LanguageModel, TheOldestVersionGoesWhenMoreArePublishedThanKept) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}, .readable_versions = 2});
  publish(*model, 1);
  publish(*model, 2);
  EXPECT_THROW(model->sampled().at(0), InternalError);
  EXPECT_NO_THROW(model->sampled().at(1));
  EXPECT_NO_THROW(model->sampled().at(2));
}

TEST(LanguageModel, VersionsArePublishedInOrder) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{}});
  EXPECT_THROW(publish(*model, 2), InternalError);
}

}  // namespace
}  // namespace sluice::nodes::language_model_test
