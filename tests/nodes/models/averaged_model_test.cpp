#include "nodes/models/averaged_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/optimizer_step.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::averaged_model_test {
namespace {

namespace fs = std::filesystem;
using engine::CheckpointCopy;
using testing::all_weights;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

struct AverageVariant {
  std::string name;
  TinyOptions options;

  friend std::ostream& operator<<(std::ostream& out, const AverageVariant& variant) { return out << variant.name; }
};

std::vector<AverageVariant> average_variants() {
  const TinyOptions plain{.optimizer = models::AdamWOptions{.learning_rate = 1e-2, .weight_decay = 0.1, .clip_grad_norm = 1}};
  std::vector<AverageVariant> all{{"whole", plain}, {"lora", plain}, {"frozen_in_part", plain}, {"bfloat16", plain}};
  all[1].options.trained.lora = LoraParams{.rank = 4};
  all[2].options.trained.freeze = {"model.embed_tokens.*", "model.layers.0.*"};
  all[3].options.precision = models::Precision::kBfloat16;
  return all;
}

std::vector<int64_t> tokens_from(int64_t first) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 6; ++i) tokens.push_back(2 + (7 * i + first) % 90);
  return tokens;
}

// A backward reads the tokens again.
at::Tensor logprobs_of(const LanguageModel& model, const std::vector<int64_t>& tokens) {
  engine::Layout layout;
  layout.add_sample(6, 4);
  return policy_logprobs(model.forward(), all_samples({tokens}, layout), 1.0);
}

// A model that is trained, and its average.
struct Followed {
  Followed(const fs::path& folder, const TinyOptions& options, EmaParams params)
      : model(std::dynamic_pointer_cast<TrainedLanguageModel>(testing::tiny_model(folder, options))),
        average(std::make_shared<AveragedLanguageModel>("teacher", model, params)) {}

  void step(int64_t iteration) {
    const std::vector<int64_t> tokens = tokens_from(13 * iteration);
    trained(*model).enter_slot(0);
    accumulate_gradient(logprobs_of(*model, tokens).sum().neg(), "loss");
    model->add_up_slots();
    step_optimizer(trained(*model), 1);
    average->follow();
  }

  void save(const fs::path& folder, CheckpointCopy copy) const {
    fs::create_directories(folder);
    for (engine::Model* one : {static_cast<engine::Model*>(model.get()), static_cast<engine::Model*>(average.get())}) {
      one->take_snapshot({}, copy);
      one->write_snapshot(folder, unsynced_disk());
    }
  }

  // In the order of names, as a run does.
  void restore(const fs::path& folder) const {
    model->restore(folder, {});
    average->restore(folder, {});
  }

  std::shared_ptr<TrainedLanguageModel> model;
  std::shared_ptr<AveragedLanguageModel> average;
};

class AveragedModel : public ::testing::TestWithParam<AverageVariant> {
 protected:
  Followed followed(EmaParams params) const { return {folder_.path(), GetParam().options, params}; }

  const TinyFolder folder_;
  const TemporaryFolder saved_;
};

TEST_P(AveragedModel, IsTheLoopOverTheWeightsThatStepsLeave) {
  Followed models = followed({.decay = 0.9});
  std::vector<double> expected;
  for (const float weight : all_weights(*models.model)) expected.push_back(weight);
  EXPECT_EQ(all_weights(*models.average), all_weights(*models.model));
  for (int64_t i = 0; i < 5; ++i) {
    models.step(i);
    const std::vector<float> live = all_weights(*models.model), average = all_weights(*models.average);
    ASSERT_EQ(average.size(), expected.size());
    for (size_t w = 0; w < expected.size(); ++w) {
      expected[w] = 0.9 * expected[w] + 0.1 * live[w];
      ASSERT_NEAR(average[w], expected[w], 1e-6) << "step " << i << ", weight " << w;
    }
    EXPECT_NE(average, live);
  }
  const std::vector<int64_t> tokens = tokens_from(3);
  EXPECT_FALSE(logprobs_of(*models.average, tokens).equal(logprobs_of(*models.model, tokens)));
}

TEST_P(AveragedModel, SharesWhatIsFrozenAndNeedsNoGradient) {
  const Followed models = followed({});
  const auto live = models.model->forward().transformer().weights().named();
  const auto average = models.average->forward().transformer().weights().named();
  ASSERT_EQ(average.size(), live.size());
  for (size_t i = 0; i < live.size(); ++i) {
    EXPECT_EQ(average[i].first, live[i].first);
    EXPECT_FALSE(average[i].second.requires_grad()) << live[i].first;
    EXPECT_EQ(average[i].second.data_ptr() == live[i].second.data_ptr(), !live[i].second.requires_grad()) << live[i].first;
  }
  EXPECT_EQ(models.average->bytes().weights, trained(*models.model).optimizer().parameters().size() * 4);
}

TEST_P(AveragedModel, GoesOnFromWhatWasSaved) {
  for (const CheckpointCopy copy : {CheckpointCopy::kMemory, CheckpointCopy::kNone}) {
    const EmaParams params{.decay = 0.7, .every_steps = 2};
    const fs::path at = saved_.path() / (copy == CheckpointCopy::kNone ? "live" : "copied");
    Followed whole = followed(params), again = followed(params);
    for (int64_t i = 0; i < 3; ++i) whole.step(i);  // between two moves
    whole.save(at, copy);
    again.restore(at);
    EXPECT_EQ(all_weights(*again.average), all_weights(*whole.average));
    for (int64_t i = 3; i < 6; ++i) whole.step(i), again.step(i);
    EXPECT_EQ(all_weights(*again.average), all_weights(*whole.average));
    EXPECT_EQ(all_weights(*again.model), all_weights(*whole.model));
    EXPECT_EQ(whole.average->bytes().copies > 0, copy == CheckpointCopy::kMemory);
  }
  for (const char* file : {"teacher.average.safetensors", "teacher/model.safetensors", "actor/model.safetensors"}) {
    const bool is_there = fs::exists(saved_.path() / "live" / file);
    EXPECT_TRUE(is_there) << file;
    if (!is_there) continue;
    EXPECT_EQ(read_file(saved_.path() / "live" / file), read_file(saved_.path() / "copied" / file)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AveragedModel, ::testing::ValuesIn(average_variants()),
                         [](const auto& info) { return info.param.name; });

TinyOptions plain_options() { return average_variants().front().options; }

TEST(AveragedModelMoves, BehindEachSoManySteps) {
  const TinyFolder folder;
  Followed models(folder.path(), plain_options(), {.decay = 0, .every_steps = 3});
  std::vector<float> third = all_weights(*models.model);
  for (int64_t i = 0; i < 7; ++i) {
    models.step(i);
    if (i % 3 == 2) third = all_weights(*models.model);
    EXPECT_EQ(all_weights(*models.average), third) << "step " << i;
  }
}

// Who trains comes to a point without a step where an iteration has nothing to learn from, or is told more often than it steps.
TEST(AveragedModelMoves, NotWithoutAStep) {
  const TinyFolder folder;
  Followed models(folder.path(), plain_options(), {.decay = 0.5});
  models.step(0);
  const std::vector<float> before = all_weights(*models.average);
  models.average->follow();
  EXPECT_EQ(all_weights(*models.average), before);
}

TEST(AveragedModelFiles, DamageIsNamed) {
  const TinyFolder folder;
  const TemporaryFolder saved;
  Followed models(folder.path(), plain_options(), {});
  models.step(0);
  models.save(saved.path(), CheckpointCopy::kMemory);
  fs::remove(saved.path() / "teacher.average.safetensors");
  EXPECT_THROW(models.average->restore(saved.path(), {}), UserError);

  TinyOptions in_part = plain_options();
  in_part.trained.freeze = {"model.layers.0.*"};
  const Followed other(folder.path(), in_part, {});
  models.save(saved.path() / "again", CheckpointCopy::kMemory);
  EXPECT_THROW(other.average->restore(saved.path() / "again", {}), UserError);  // it has weights that are not trained here
}

}  // namespace
}  // namespace sluice::nodes::averaged_model_test
