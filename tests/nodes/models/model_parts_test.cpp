#include "nodes/models/model_parts.h"
#include "models/folder/folder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "nodes/models/language_model.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::model_parts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;
using testing::tiny_model;
using testing::TinyFolder;

engine::NodeResources resources_with(std::shared_ptr<engine::Model> model) {
  return {.node = "train", .models = {{"actor", std::move(model)}}};
}

TEST(ModelParts, AFrozenModelHasNothingThatIsTrainedOrPublished) {
  const TinyFolder folder;
  const engine::NodeResources resources = resources_with(tiny_model(folder.path(), {}));
  const auto refused = ThrowsMessage<InternalError>(HasSubstr("node train works with model actor, which is not trained"));
  EXPECT_THAT([&] { trained_model(resources, "actor"); }, refused);
  EXPECT_THAT([&] { weight_publisher(resources, "actor"); }, refused);
}

TEST(ModelParts, AModelThatWasNotGivenToTheNodeIsNamed) {
  EXPECT_THAT([] { forward_model(resources_with(nullptr), "critic"); },
              ThrowsMessage<InternalError>(HasSubstr("node train was not given model critic")));
}

TEST(ModelParts, APartKeepsItsModel) {
  const TinyFolder folder;
  engine::NodeResources resources = resources_with(tiny_model(folder.path(), {}));
  const auto sampled = sampled_weights(resources, "actor");
  resources.models.clear();
  EXPECT_EQ(sampled->at(0).head().outputs(), TinyFolder::kVocabulary);
}

TEST(ModelParts, TextIsReadWithoutWeights) {
  const TinyFolder folder;
  const ModelText text("actor", folder.path());
  EXPECT_EQ(text.tokenizer().encode("a b"),
            model_text(resources_with(tiny_model(folder.path(), {})), "actor")->tokenizer().encode("a b"));
}

// Publishes to nobody, such as other processes would, and notes what it was asked for.
class Elsewhere final : public WeightPublisher {
 public:
  explicit Elsewhere(const ForwardModel& live) : live_(live) {}

  void publish(int64_t version) override {
    published.emplace_back(version, live_.transformer().weights().embedding.const_data_ptr<float>()[0]);
  }
  void restart() override { published.clear(); }

  std::vector<std::pair<int64_t, float>> published;  // and the first weight

 private:
  const ForwardModel& live_;
};

// A model that is trained here and sampled from elsewhere.
struct Remote {
  explicit Remote(const std::filesystem::path& folder)
      : live("actor", models::load_transformer(folder, {.random_init = true, .trainable = true})),
        elsewhere(live),
        trained(live, {.optimizer = {.learning_rate = 1e-2}}, {.readable = 0, .saved = 1}, elsewhere) {}

  void move(float amount) {
    const at::NoGradGuard no_gradient;
    for (const auto& [name, tensor] : live.transformer().weights().named()) tensor.add_(amount);
  }
  float first() const { return live.transformer().weights().embedding.const_data_ptr<float>()[0]; }

  ForwardModel live;
  Elsewhere elsewhere;
  TrainedModel trained;
};

TEST(WeightPublisher, AnotherOneStandsWhereThisProcessPublishesAndSavedVersionsAreKeptAllTheSame) {
  const TinyFolder folder;
  const TemporaryFolder saved;
  Remote model(folder.path());
  const float initial = model.first();
  model.move(1.0f);
  model.trained.publisher().publish(1);
  model.move(1.0f);
  model.trained.take_snapshot({.oldest = 1, .newest = 2}, engine::CheckpointCopy::kMemory);
  model.trained.publisher().publish(2);
  EXPECT_THAT(model.elsewhere.published, ElementsAre(Pair(1, initial + 1.0f), Pair(2, initial + 1.0f + 1.0f)));
  model.trained.write_snapshot(folder.path(), saved.path(), unsynced_disk());

  Remote restored(folder.path());
  restored.trained.restore(saved.path(), {.oldest = 1, .newest = 2});
  EXPECT_EQ(restored.elsewhere.published, model.elsewhere.published);
}

}  // namespace
}  // namespace sluice::nodes::model_parts_test
