#include "nodes/models/gradients/common_training.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file.h"
#include "nodes/train/optimizer_step.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/common_memory_in_threads.h"
#include "tests/nodes/gradients_in_one_process.h"
#include "tests/nodes/models/same_packed.h"
#include "tests/nodes/models/step_together.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::common_training_test {
namespace {

namespace fs = std::filesystem;
using engine::CheckpointCopy;
using testing::add_gradient;
using testing::add_gradients;
using testing::CommonMemoryInThreads;
using testing::expect_same;
using testing::GradientsInOneProcess;
using testing::kSlots;
using testing::step_together;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;
using testing::with_logprobs;

at::Tensor logprobs_of(const LanguageModel& model, int64_t iteration, int slot) {
  at::Tensor values;
  with_logprobs(model, iteration, slot, [&](const at::Tensor& logprobs) { values = logprobs.detach(); });
  return values;
}

// A model whose ranks have its weights in common, all of them or those of a group.
class CommonRanks {
 public:
  CommonRanks(const fs::path& folder, int ranks, const TinyOptions& options, int groups = 1)
      : gradients_(ranks, kSlots), memory_(ranks, groups), models_(static_cast<size_t>(ranks)) {
    memory_.on_all([&](int rank) {
      TinyOptions own = options;
      own.world = {rank, ranks, kSlots};
      own.shard_optimizer = ranks > 1;
      own.gradients = ranks > 1 && options.optimizer ? gradients_.rank(rank) : nullptr;
      own.common = memory_.rank(rank);
      models_[static_cast<size_t>(rank)] = testing::tiny_model(folder, own);
    });
  }

  LanguageModel& model(int rank) { return *models_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(models_.size()); }

  // One step, with a sample for each slot. Returns the norm that all ranks see.
  double train(int64_t iteration) {
    for (int rank = 0; rank < size(); ++rank) add_gradients(model(rank), engine::World{rank, size(), kSlots}.mine(), iteration);
    return step_together(models_);
  }

  void save(const fs::path& folder, CheckpointCopy copy) {
    for (const auto& model : models_) model->take_snapshot({}, copy);
    if (copy == CheckpointCopy::kMemory) train(99);  // changes the live weights, and no copy
    for (const auto& model : models_) model->write_snapshot(folder, unsynced_disk());
  }

  void on_all(const std::function<void(int rank)>& work) { memory_.on_all(work); }

  void restore(const fs::path& folder) {
    memory_.on_all([&](int rank) { model(rank).restore(folder, {}); });
  }

 private:
  GradientsInOneProcess gradients_;
  CommonMemoryInThreads memory_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
};

struct CommonVariant {
  std::string name;
  TinyOptions options;

  friend std::ostream& operator<<(std::ostream& out, const CommonVariant& variant) { return out << variant.name; }
};

std::vector<CommonVariant> common_variants() {
  TinyOptions plain{.optimizer = models::AdamWOptions{.learning_rate = 1e-2, .weight_decay = 0.1, .clip_grad_norm = 1}};
  std::vector<CommonVariant> all{
      {"whole", plain}, {"frozen_in_part", plain}, {"bfloat16", plain}, {"one_bucket", plain}, {"in_groups", plain}};
  all[1].options.trained.freeze = {"model.embed_tokens.*", "model.layers.0.*"};
  all[2].options.precision = models::Precision::kBfloat16;
  all[2].options.trained.freeze = {"model.layers.1.mlp.*"};
  all[3].options.floats_of_bucket = kFloatsOfABucket;
  all[4].options.optimizer->groups = {{.match = "model.layers.1.*", .learning_rate_scale = 0.1},
                                      {.match = "*norm*", .learning_rate_scale = 2, .weight_decay = 0.3}};
  return all;
}

class CommonTrainingTest : public ::testing::TestWithParam<CommonVariant> {
 protected:
  CommonRanks ranks(int count, int groups = 1) const { return {model_.path(), count, GetParam().options, groups}; }

  const TinyFolder model_;
  const TemporaryFolder folder_;
};

// The same bits on any number of ranks, and rounded in another way alone than without common memory.
TEST_P(CommonTrainingTest, StepsAsOneDoes) {
  CommonRanks one = ranks(1);
  std::vector<double> norms;
  for (int64_t i = 0; i < 4; ++i) norms.push_back(one.train(i));
  for (const auto& [count, groups] : {std::pair{2, 1}, {3, 1}, {4, 1}, {2, 2}, {4, 2}, {6, 3}}) {
    SCOPED_TRACE(std::to_string(count) + " ranks in " + std::to_string(groups) + " groups");
    CommonRanks several = ranks(count, groups);
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(several.train(i), norms[static_cast<size_t>(i)]) << "iteration " << i;
    for (int rank = 0; rank < count; ++rank)
      EXPECT_EQ(testing::all_weights(several.model(rank)), testing::all_weights(one.model(0))) << "rank " << rank;
  }
}

TEST_P(CommonTrainingTest, StepsAsARankWithMemoryOfItsOwn) {
  TinyOptions options = GetParam().options;
  options.world = {0, 1, 1};
  const auto own = testing::tiny_model(model_.path(), options);
  CommonRanks common = ranks(3);
  EXPECT_EQ(testing::all_weights(common.model(2)), testing::all_weights(*own));
  for (int64_t i = 0; i < 4; ++i) {
    for (int slot = 0; slot < kSlots; ++slot) add_gradient(*own, i, slot);
    const double norm = step_optimizer(trained(*own), kSlots);
    EXPECT_NEAR(common.train(i) / norm, 1, i == 0 ? 1e-6 : 1e-3);
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    const double difference = (logprobs_of(*own, 9, slot) - logprobs_of(common.model(1), 9, slot)).abs().max().item().toDouble();
    EXPECT_LT(difference, GetParam().options.precision == models::Precision::kFloat32 ? 1e-3 : 0.1);
  }
}

// What any number of ranks has saved, in any number of groups, any other goes on from.
TEST_P(CommonTrainingTest, IsSavedByAllAndReadByOthers) {
  CommonRanks whole = ranks(1);
  for (int64_t i = 0; i < 2; ++i) whole.train(i);
  const std::vector<float> expected = testing::all_weights(whole.model(0));
  const double norm = whole.train(2);
  for (const auto& [saving, groups] : {std::pair{1, 1}, {2, 1}, {3, 1}, {4, 2}}) {
    const fs::path folder = folder_.path() / std::to_string(saving);
    CommonRanks savers = ranks(saving, groups);
    for (int64_t i = 0; i < 2; ++i) savers.train(i);
    savers.save(folder, saving == 2 ? CheckpointCopy::kNone : CheckpointCopy::kMemory);
    for (const int reading : {1, 2, 4}) {
      SCOPED_TRACE("saved by " + std::to_string(saving) + ", read by " + std::to_string(reading));
      CommonRanks readers = ranks(reading, reading == 4 ? 2 : 1);
      readers.train(7);  // another history, which restoring must make forget
      readers.restore(folder);
      EXPECT_EQ(testing::all_weights(readers.model(reading - 1)), expected);
      EXPECT_EQ(readers.train(2), norm);
      EXPECT_EQ(testing::all_weights(readers.model(reading - 1)), testing::all_weights(whole.model(0)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CommonTrainingTest, ::testing::ValuesIn(common_variants()),
                         [](const auto& info) { return info.param.name; });

class CommonMemoryOfRanks : public ::testing::Test {
 protected:
  static int64_t float_bytes(const LanguageModel& model) { return 4 * std::ssize(testing::all_weights(model)); }

  const TinyFolder model_;
};

TEST_F(CommonMemoryOfRanks, IsThereOnce) {
  constexpr int kRanks = 2;
  CommonRanks ranks(model_.path(), kRanks, common_variants()[3].options);
  ranks.train(0);
  const int64_t all = float_bytes(ranks.model(0));
  engine::ModelBytes sum;
  int64_t published = 0, sums = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const engine::ModelBytes bytes = ranks.model(rank).bytes();
    published += ranks.model(rank).sampled().bytes();
    sum.weights += bytes.weights, sum.optimizer += bytes.optimizer;
    sums += bytes.gradients;
    EXPECT_GT(bytes.of_others, all / kRanks);
  }
  EXPECT_NEAR(static_cast<double>(sum.weights - published), static_cast<double>(all), 0.01 * static_cast<double>(all));
  EXPECT_LE(sums, 2 * all + kRanks * 2 * all);  // of eight bytes, and what passes on each rank, in pages
  EXPECT_NEAR(static_cast<double>(sum.optimizer), static_cast<double>(2 * all), 0.02 * static_cast<double>(all));
}

// In each group: but each rank has its part of the optimizer, of all ranks.
TEST_F(CommonMemoryOfRanks, IsThereOnceInEachGroup) {
  CommonRanks ranks(model_.path(), 4, common_variants()[3].options, 2);
  ranks.train(0);
  const auto all = static_cast<double>(float_bytes(ranks.model(0)));
  double weights = 0, optimizers = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const engine::ModelBytes bytes = ranks.model(rank).bytes();
    weights += static_cast<double>(bytes.weights - ranks.model(rank).sampled().bytes());
    optimizers += static_cast<double>(bytes.optimizer);
  }
  EXPECT_NEAR(weights, 2 * all, 0.02 * all);
  EXPECT_NEAR(optimizers, 2 * all, 0.02 * all);
}

TEST_F(CommonMemoryOfRanks, HasFrozenModelsToo) {
  for (const auto precision : {models::Precision::kFloat32, models::Precision::kBfloat16}) {
    TinyOptions options{.readable_versions = 0, .precision = precision};
    const auto own = testing::tiny_model(model_.path(), options);
    for (const int groups : {1, 2}) {
      CommonRanks ranks(model_.path(), 4, options, groups);
      int64_t bytes = 0;
      for (int rank = 0; rank < 4; ++rank) {
        EXPECT_TRUE(logprobs_of(ranks.model(rank), 0, rank).equal(logprobs_of(*own, 0, rank)));
        bytes += ranks.model(rank).bytes().weights;
      }
      EXPECT_NEAR(static_cast<double>(bytes), groups * static_cast<double>(own->bytes().weights), 4096);
    }
  }
}

TEST_F(CommonMemoryOfRanks, HasPublishedCopiesToo) {
  constexpr int kRanks = 3;
  TinyOptions options = common_variants()[0].options;
  options.readable_versions = 2;
  CommonRanks ranks(model_.path(), kRanks, options);
  options.world = {0, 1, 1};
  const auto own = testing::tiny_model(model_.path(), options);
  const int64_t of_own = own->sampled().bytes();
  for (int64_t version = 1; version < 5; ++version) {
    testing::shift_weights(ranks.model(0), 0.1F);  // of all
    testing::shift_weights(*own, 0.1F);
    ranks.on_all([&](int rank) { testing::publish(ranks.model(rank), version); });
    testing::publish(*own, version);
    int64_t bytes = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const SampledWeights& sampled = ranks.model(rank).sampled();
      bytes += sampled.bytes();
      for (const int64_t readable : {version - 1, version}) expect_same(sampled.at(readable), own->sampled().at(readable));
    }
    EXPECT_NEAR(static_cast<double>(bytes), 2.0 * static_cast<double>(of_own), kRanks);
  }
}

// Adapters are of each rank alone, and added up as ever: the same bits as without common memory.
TEST_F(CommonMemoryOfRanks, HasWhatAdaptersChange) {
  TinyOptions options = common_variants()[0].options;
  options.trained.lora = LoraParams{.rank = 4};
  CommonRanks ranks(model_.path(), 4, options, 2);
  options.world = {0, 1, kSlots};
  const auto own = testing::tiny_model(model_.path(), options);
  for (int64_t i = 0; i < 3; ++i) {
    for (int slot = 0; slot < kSlots; ++slot) {
      trained(*own).enter_slot(slot);
      add_gradient(*own, i, slot);
    }
    own->add_up_slots();
    EXPECT_EQ(ranks.train(i), step_optimizer(trained(*own), kSlots));
  }
  EXPECT_EQ(testing::all_weights(ranks.model(1)), testing::all_weights(*own));
  EXPECT_LT(ranks.model(0).bytes().weights, own->bytes().weights);
}

}  // namespace
}  // namespace sluice::nodes::common_training_test
