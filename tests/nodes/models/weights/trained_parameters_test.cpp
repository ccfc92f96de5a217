#include "nodes/models/weights/trained_parameters.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "models/folder/folder.h"
#include "models/layers/adapter_products.h"
#include "models/memory/tensor_memory.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/logprobs.h"
#include "nodes/models/language_model.h"
#include "nodes/train/optimizer_step.h"
#include "tests/nodes/bound_model.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::trained_parameters_test {
namespace {

using testing::all_weights;
using testing::Bound;
using testing::dtype_entry;
using testing::entry;
using testing::floats;
using ::testing::HasSubstr;
using testing::head_entry;
using testing::make_mixture;
using testing::mixed_groups;
using testing::model_spec;
using testing::optimizer_entry;
using testing::run_node;
using testing::save_model;
using ::testing::SizeIs;
using testing::spec_of;
using testing::strings_entry;
using testing::table_entry;
using testing::tiny_model;
using testing::TinyFolder;
using testing::trained;

constexpr int64_t kTable = 96 * 32, kLayer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32, kNorm = 32;
constexpr int64_t kAll = 2 * kTable + 2 * kLayer + kNorm;

engine::Entry lora_entry(std::vector<engine::Entry> more = {}) {
  more.push_back(entry("rank", int64_t{4}));
  return table_entry("lora", std::move(more));
}

// Of the tensors of a model that is trained.
int64_t live_bytes(const Bound& bound) {
  int64_t live = 0;
  std::thread([&] {
    models::TensorMemory memory;
    memory.watch_this_thread();
    const auto model = LanguageModelType().load(bound.params, {.name = "actor", .updated = true});
    live = memory.live();
  }).join();
  return live;
}

// Of a folder that may be without weights.
std::string only_problem(const engine::ModelSpec& spec) {
  Bound bound(spec);
  std::erase_if(bound.problems, [](const Problem& problem) { return problem.kind == "weights-unusable"; });
  EXPECT_FALSE(bound.params);
  EXPECT_THAT(bound.problems, SizeIs(1)) << render(bound.problems);
  return bound.problems.empty() ? "" : render(bound.problems);
}

TEST(FrozenParameters, NeedNeitherGradientsNorMoments) {
  const TinyFolder folder;
  const Bound bound(
      model_spec(folder.path(), {optimizer_entry(1e-3), strings_entry("freeze", {"model.embed_tokens.*", "model.layers.0.*"})}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  const int64_t trained = kTable + kLayer + kNorm;
  EXPECT_EQ(bound.facts.weight_bytes, 4 * kAll);
  EXPECT_EQ(bound.facts.gradient_bytes, 4 * trained);
  EXPECT_EQ(bound.facts.optimizer_bytes, 8 * trained);
}

// What is frozen is held as products read it.
TEST(FrozenParameters, TakeTwoBytesEachInBfloat16) {
  const TinyFolder folder;
  const std::vector<std::string> patterns{"model.embed_tokens.*", "model.layers.0.*"};
  const Bound bound(
      model_spec(folder.path(), {optimizer_entry(1e-3), dtype_entry("bfloat16"), strings_entry("freeze", patterns)}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  const int64_t trained = kTable + kLayer + kNorm, norms = 2 * kNorm;  // of the frozen layer
  EXPECT_EQ(bound.facts.weight_bytes, 4 * trained + 2 * (kTable + kLayer - norms) + 4 * norms);
  EXPECT_EQ(bound.facts.folder_bytes, 4 * kAll);
  save_model(*tiny_model(folder.path(), {}), folder.path());
  EXPECT_EQ(live_bytes(bound), bound.facts.weight_bytes + bound.facts.gradient_bytes + bound.facts.optimizer_bytes);
}

TEST(FrozenParameters, StayAsTheyAreBitForBit) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{.learning_rate = 0.1, .weight_decay = 0.1},
                                                .trained = {.freeze = {"model.embed_tokens.*", "model.layers.1.*"}, .lora = {}}});
  const models::Weights before = model->forward().transformer().weights().clone();
  const std::vector<int64_t> tokens{5, 6, 7, 8};
  engine::Layout layout;
  layout.add_sample(4, 3);
  accumulate_gradient(policy_logprobs(model->forward(), all_samples({tokens}, layout), 1.0).sum(), "loss");
  step_optimizer(trained(*model), 3);
  const auto then = before.named(), now = model->forward().transformer().weights().named();
  for (size_t i = 0; i < now.size(); ++i) {
    const bool frozen = now[i].first.starts_with("model.embed_tokens.") || now[i].first.starts_with("model.layers.1.");
    EXPECT_EQ(now[i].second.equal(then[i].second), frozen) << now[i].first;
  }
}

TEST(FrozenParameters, APatternThatMatchesNothingIsRefused) {
  const TinyFolder folder;
  EXPECT_THAT(only_problem(model_spec(folder.path(), {optimizer_entry(1e-3), strings_entry("freeze", {"model.layer.0.*"})})),
              HasSubstr("did you mean \"model.layers.0.*\"?"));
}

TEST(FrozenParameters, MeanNothingWithoutAnOptimizerOrBesideAdapters) {
  const TinyFolder folder;
  const engine::Entry freeze = strings_entry("freeze", {"model.norm.*"});
  EXPECT_THAT(only_problem(model_spec(folder.path(), {freeze})), HasSubstr("freeze of model 'actor' has no effect"));
  EXPECT_THAT(only_problem(model_spec(folder.path(), {freeze, optimizer_entry(1e-3), lora_entry()})),
              HasSubstr("freeze of model 'actor' has no effect: beside lora"));
}

// Rank 4 on all matrices of two layers.
constexpr int64_t kAdapters = 2 * 4 * (2 * (32 + 32) + 2 * (32 + 16) + 3 * (32 + 48));

TEST(Lora, OnlyAdaptersTakeGradientsAndMoments) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3), lora_entry()}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  EXPECT_EQ(bound.facts.parameters, kAll + kAdapters);
  EXPECT_EQ(bound.facts.weight_bytes, 4 * (kAll + kAdapters));
  EXPECT_EQ(bound.facts.gradient_bytes, 4 * kAdapters);
  EXPECT_EQ(bound.facts.optimizer_bytes, 8 * kAdapters);
  EXPECT_TRUE(bound.facts.has_base);
}

// Of make_mixture().
constexpr int64_t kExpert = 3 * 40 * 32, kRouter = 5 * 32 + 32;

TEST(Lora, OfAMixtureIsOfAttentionAndTheSharedExpert) {
  const TinyFolder folder;
  make_mixture(folder);
  save_model(*tiny_model(folder.path(), {}), folder.path());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3), dtype_entry(dtype), lora_entry()}));
    ASSERT_TRUE(bound.params) << render(bound.problems);
    EXPECT_EQ(bound.facts.parameters, kAll + 2 * (5 * kExpert + kRouter) + kAdapters);
    EXPECT_EQ(bound.facts.idle_parameters, 2 * 3 * kExpert);
    EXPECT_EQ(bound.facts.gradient_bytes, 4 * kAdapters);
    EXPECT_EQ(live_bytes(bound), bound.facts.weight_bytes + bound.facts.gradient_bytes + bound.facts.optimizer_bytes) << dtype;
  }
}

TEST(Lora, OfAMixtureBesideMlpsIsOfTheseToo) {
  const TinyFolder folder;
  make_mixture(folder, 5, {0});
  save_model(*tiny_model(folder.path(), {}), folder.path());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3), dtype_entry(dtype), lora_entry()}));
    ASSERT_TRUE(bound.params) << render(bound.problems);
    EXPECT_EQ(bound.facts.parameters,
              kAll + 5 * kExpert + kRouter + kAdapters);  // of one layer; the other is as wide as its shared one
    EXPECT_EQ(bound.facts.idle_parameters, 3 * kExpert);
    EXPECT_EQ(bound.facts.gradient_bytes, 4 * kAdapters);
    EXPECT_EQ(live_bytes(bound), bound.facts.weight_bytes + bound.facts.gradient_bytes + bound.facts.optimizer_bytes) << dtype;
  }
}

TEST(TrainedWeights, OfAMixtureBesideMlpsTakeTheMemoryThatIsPredicted) {
  const TinyFolder folder;
  make_mixture(folder, 6, {0});
  save_model(*tiny_model(folder.path(), {}), folder.path());
  const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3)}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  EXPECT_EQ(live_bytes(bound), bound.facts.weight_bytes + bound.facts.gradient_bytes + bound.facts.optimizer_bytes);
  const auto layer = [](int64_t experts) { return 4 * (kLayer + experts * kExpert + 6 * 32 + 32); };
  // With a page for every weight: the mixture is the largest that passes, and of its experts a rank has its own.
  EXPECT_EQ(bound.facts.passing_bytes - bound.facts.shared_passing_bytes(2), layer(6) - layer(3));
  EXPECT_EQ(bound.facts.passing_bytes % 4096, layer(6) % 4096);
}

TEST(Lora, OfExpertsIsRefused) {
  const TinyFolder folder;
  make_mixture(folder);
  const engine::Entry lora = lora_entry({strings_entry("targets", {"experts.0.up_proj"})});
  EXPECT_THAT(only_problem(model_spec(folder.path(), {optimizer_entry(1e-3), lora})),
              HasSubstr("of this model are of its experts, which cannot have adapters"));
}

TEST(RouterAuxLoss, IsRefusedWhereNoRouterIsTrained) {
  const TinyFolder dense, folder;
  make_mixture(folder);
  const engine::Entry loss = entry("router_aux_loss", 1e-3), optimizer = optimizer_entry(1e-3);
  EXPECT_THAT(only_problem(model_spec(dense.path(), {optimizer, loss})), HasSubstr("it is no mixture of experts"));
  EXPECT_THAT(only_problem(model_spec(folder.path(), {loss})), HasSubstr("without an optimizer nothing of it is trained"));
  EXPECT_THAT(only_problem(model_spec(folder.path(), {optimizer, loss, lora_entry()})),
              HasSubstr("beside lora no router is trained"));
  EXPECT_THAT(only_problem(model_spec(folder.path(), {optimizer, loss, strings_entry("freeze", {"*.mlp.gate.weight"})})),
              HasSubstr("all its routers are frozen"));
}

TEST(RouterAuxLoss, IsTakenWhereSomeRouterIsTrained) {
  const TinyFolder folder;
  make_mixture(folder);
  const engine::Entry loss = entry("router_aux_loss", 1e-3), optimizer = optimizer_entry(1e-3);
  for (const std::vector<engine::Entry>& keys :
       {std::vector{optimizer, loss}, {optimizer, loss, strings_entry("freeze", {"model.layers.0.mlp.gate.weight"})}}) {
    const Bound bound(model_spec(folder.path(), keys));
    EXPECT_TRUE(bound.params) << render(bound.problems);
    EXPECT_TRUE(bound.facts.is_mixture());
  }
  const TinyFolder mixed;
  make_mixture(mixed, 5, {0});
  EXPECT_TRUE(Bound(model_spec(mixed.path(), {optimizer, loss})).params);
  EXPECT_THAT(
      only_problem(model_spec(mixed.path(), {optimizer, loss, strings_entry("freeze", {"model.layers.1.mlp.gate.weight"})})),
      HasSubstr("all its routers are frozen"));
  const TinyFolder dense;
  EXPECT_FALSE(Bound(model_spec(dense.path(), {optimizer})).facts.is_mixture());
}

TEST(Lora, TakesTheMemoryThatIsPredicted) {
  const TinyFolder folder;
  save_model(*tiny_model(folder.path(), {}), folder.path());
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3), dtype_entry(dtype), lora_entry()}));
    EXPECT_EQ(live_bytes(bound), bound.facts.weight_bytes + bound.facts.gradient_bytes + bound.facts.optimizer_bytes) << dtype;
  }
}

TEST(Lora, HasABaseOfTwoBytesAParameterInBfloat16) {
  const TinyFolder folder;
  const Bound bound(model_spec(folder.path(), {optimizer_entry(1e-3), dtype_entry("bfloat16"), lora_entry()}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  const int64_t norms = 2 * 2 * kNorm + kNorm;
  EXPECT_EQ(bound.facts.weight_bytes, 2 * (kAll - norms) + 4 * norms + 4 * kAdapters);
  EXPECT_EQ(bound.facts.folder_bytes, 4 * (kAll + kAdapters));  // saved as float32
}

TEST(Lora, MeansNothingWithoutAnOptimizer) {
  const TinyFolder folder;
  EXPECT_THAT(only_problem(model_spec(folder.path(), {lora_entry()})), HasSubstr("lora of model 'actor' has no effect"));
}

TEST(Lora, ATargetThatTheModelDoesNotHaveIsRefused) {
  const TinyFolder folder;
  const auto spec = model_spec(folder.path(), {optimizer_entry(1e-3), lora_entry({strings_entry("targets", {"q_prj"})})});
  EXPECT_THAT(only_problem(spec), HasSubstr("did you mean \"q_proj\"?"));
}

TEST(Lora, AnAdapterAloneWouldLoseAValueHead) {
  const TinyFolder folder;
  const auto spec = model_spec(
      folder.path(), {optimizer_entry(1e-3), head_entry("policy+value"), lora_entry({entry("save", std::string("adapter"))})});
  EXPECT_THAT(only_problem(spec), HasSubstr("would lose the value head"));
}

// A model with adapters that have learned something, and the base of it.
class LoraBase : public ::testing::Test {
 protected:
  LoraBase() {
    save_model(*tiny_model(folder_.path(), {}), folder_.path());
    const Bound bound(model_spec(folder_.path(), {optimizer_entry(1e-3), lora_entry()}));
    actor_ = std::dynamic_pointer_cast<LanguageModel>(
        LanguageModelType().load(bound.params, {.name = "actor", .updated = true, .versions = {.readable = 1}}));
    const at::NoGradGuard no_gradient;
    for (const auto& [name, factor] : actor_->forward().transformer().weights().trainable()) factor.normal_(0, 0.1);
  }

  static std::vector<float> logprobs(const std::shared_ptr<LanguageModel>& model) {
    return floats(run_node<Logprobs>(LogprobsParams{.model = "m"}, {{"m", model}}, mixed_groups()), "reference_logprobs");
  }

  std::shared_ptr<LanguageModel> load(const std::filesystem::path& folder) {
    return std::make_shared<FrozenLanguageModel>("loaded", folder, models::load_transformer(folder, {}), engine::ModelVersions{});
  }

  const TinyFolder folder_;
  std::shared_ptr<LanguageModel> actor_;
};

TEST_F(LoraBase, IsTheModelBeforeItWasTrained) {
  const Bound bound(spec_of({entry("base_of", std::string("other"))}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  EXPECT_EQ(bound.facts.base_of, "other");
  const auto base =
      std::dynamic_pointer_cast<LanguageModel>(LanguageModelType().load(bound.params, {.name = "reference", .base = actor_}));
  EXPECT_EQ(logprobs(base), logprobs(load(folder_.path())));
  EXPECT_NE(logprobs(base), logprobs(actor_));
  EXPECT_TRUE(base->forward().transformer().weights().embedding.is_same(actor_->forward().transformer().weights().embedding));
  EXPECT_EQ(std::dynamic_pointer_cast<TrainedLanguageModel>(base), nullptr);
  EXPECT_EQ(base->bytes().weights, 0);
}

TEST_F(LoraBase, KeysOfAModelWithWeightsMeanNothing) {
  const std::string problem = only_problem(spec_of({entry("base_of", std::string("other")), optimizer_entry(1e-3)}));
  EXPECT_THAT(problem, HasSubstr("optimizer of model 'actor' has no effect: it is the base of 'other'"));
}

TEST_F(LoraBase, IsSavedMergedAndAsAnAdapter) {
  actor_->take_snapshot({.oldest = 0, .newest = 0}, engine::CheckpointCopy::kMemory);
  actor_->write_snapshot(folder_.path(), disk());
  const std::filesystem::path saved = folder_.path() / "actor";
  const auto merged = logprobs(load(saved)), live = logprobs(actor_);
  ASSERT_EQ(merged.size(), live.size());
  for (size_t i = 0; i < live.size(); ++i) EXPECT_NEAR(merged[i], live[i], 1e-4);

  const Bound bound(
      model_spec(folder_.path(), {optimizer_entry(1e-3), lora_entry({entry("adapter", (saved / "adapter").string())})}));
  ASSERT_TRUE(bound.params) << render(bound.problems);
  const auto again = std::dynamic_pointer_cast<LanguageModel>(LanguageModelType().load(bound.params, {.updated = true}));
  EXPECT_EQ(all_weights(*again), all_weights(*actor_));
}

// Rounding what is merged would lose what was learned in small steps.
TEST(Lora, IsSavedMergedInFloat32WhateverItsBaseIsHeldIn) {
  const TinyFolder folder;
  const auto model = tiny_model(folder.path(), {.optimizer = models::AdamWOptions{},
                                                .precision = models::Precision::kBfloat16,
                                                .trained = {.freeze = {}, .lora = LoraParams{.rank = 4}}});
  const models::Weights& weights = model->forward().transformer().weights();
  EXPECT_EQ(weights.layers[0].query.weight.scalar_type(), at::kBFloat16);
  {
    const at::NoGradGuard no_gradient;
    for (const auto& [name, factor] : weights.trainable()) factor.normal_(0, 0.01);
  }
  model->take_snapshot({.oldest = 0, .newest = 0}, engine::CheckpointCopy::kMemory);
  model->write_snapshot(folder.path(), disk());
  const models::Weights saved = models::load_transformer(folder.path() / "actor", {}).weights();
  EXPECT_TRUE(
      saved.layers[1].query.weight.equal(models::merged_matrix(weights.layers[1].query.weight, weights.layers[1].query.adapter)));
  EXPECT_TRUE(saved.embedding.equal(weights.embedding.to(at::kFloat)));
}

TEST(LanguageModelType, NeedsACheckpointOrABase) {
  EXPECT_THAT(only_problem(spec_of({})), HasSubstr("[models.actor] needs checkpoint"));
}

}  // namespace
}  // namespace sluice::nodes::trained_parameters_test
