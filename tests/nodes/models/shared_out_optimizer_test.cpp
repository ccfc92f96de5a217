#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/gradients_in_one_process.h"
#include "tests/nodes/models/step_together.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::shared_out_optimizer_test {
namespace {

namespace fs = std::filesystem;
using engine::CheckpointCopy;
using testing::add_gradients;
using testing::GradientsInOneProcess;
using testing::kSlots;
using testing::step_together;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

// A model on so many ranks.
class Ranks {
 public:
  Ranks(const fs::path& folder, int ranks, TinyOptions options) : gradients_(ranks, kSlots) {
    for (int rank = 0; rank < ranks; ++rank) {
      options.world = {rank, ranks, kSlots};
      options.gradients = ranks > 1 ? gradients_.rank(rank) : nullptr;
      models_.push_back(testing::tiny_model(folder, options));
    }
  }

  LanguageModel& model(int rank) { return *models_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(models_.size()); }

  // One step, with a sample for each slot. Returns the norm that all ranks see.
  double train(int64_t iteration) {
    const bool says_the_last = iteration % 2 == 0;  // then some are added up before all have come
    for (int rank = 0; rank < size(); ++rank) {
      const int asked = gradients_.asked_by(rank);
      add_gradients(model(rank), engine::World{rank, size(), kSlots}.mine(), iteration, says_the_last);
      const auto buckets = static_cast<int>(trained(model(rank)).optimizer().buckets().size());
      const bool goes_early = says_the_last && size() > 1;
      EXPECT_GE(gradients_.asked_by(rank), asked + (goes_early ? buckets - 1 : 0));
    }
    return step_together(models_);
  }

  void save(const fs::path& folder, CheckpointCopy copy) {
    for (const auto& model : models_) {
      model->take_snapshot({}, copy);
      model->write_snapshot(folder, unsynced_disk());
    }
  }

  void restore(const fs::path& folder) {
    for (const auto& model : models_) model->restore(folder, {});
  }

 private:
  GradientsInOneProcess gradients_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
};

struct SharedVariant {
  std::string name;
  TinyOptions options;

  friend std::ostream& operator<<(std::ostream& out, const SharedVariant& variant) { return out << variant.name; }
};

std::vector<SharedVariant> shared_variants() {
  TinyOptions plain{.optimizer = models::AdamWOptions{.learning_rate = 1e-2, .weight_decay = 0.1, .clip_grad_norm = 1}};
  plain.shard_optimizer = true;
  std::vector<SharedVariant> all{
      {"whole", plain}, {"lora", plain}, {"not_shared", plain}, {"one_bucket", plain}, {"in_groups", plain}};
  all[1].options.trained.lora = LoraParams{.rank = 64};  // of more than one block
  all[2].options.shard_optimizer = false;
  all[3].options.floats_of_bucket = kFloatsOfABucket;
  all[4].options.optimizer->groups = {{.match = "model.layers.1.*", .learning_rate_scale = 0.1},
                                      {.match = "*norm*", .learning_rate_scale = 2, .weight_decay = 0.3},
                                      {.match = "lm_head.*", .weight_decay = 0}};
  return all;
}

class SharedOutOptimizer : public ::testing::TestWithParam<SharedVariant> {
 protected:
  Ranks ranks(int count) const { return {model_.path(), count, GetParam().options}; }

  const TinyFolder model_;
  const TemporaryFolder folder_;
};

TEST_P(SharedOutOptimizer, StepsAsOneDoes) {
  Ranks one = ranks(1);
  for (const int count : {2, 3, 4}) {
    Ranks alone = ranks(1), several = ranks(count);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(several.train(i), alone.train(i)) << count << " ranks, iteration " << i;
    for (int rank = 0; rank < count; ++rank)
      EXPECT_EQ(testing::all_weights(several.model(rank)), testing::all_weights(alone.model(0))) << count << " ranks, " << rank;
  }
}

// What any number of ranks has saved, any number goes on from.
TEST_P(SharedOutOptimizer, IsSavedByItsOwnersAndReadByOthers) {
  Ranks whole = ranks(1);
  for (int64_t i = 0; i < 2; ++i) whole.train(i);
  for (const int saving : {1, 2, 3}) {
    const fs::path folder = folder_.path() / std::to_string(saving);
    Ranks savers = ranks(saving);
    for (int64_t i = 0; i < 2; ++i) savers.train(i);
    savers.save(folder, saving == 2 ? CheckpointCopy::kNone : CheckpointCopy::kMemory);
    for (const int reading : {1, 2, 4}) {
      SCOPED_TRACE("saved by " + std::to_string(saving) + ", read by " + std::to_string(reading));
      Ranks alone = ranks(1), readers = ranks(reading);
      alone.restore(folder);
      readers.train(7);  // another history, which restoring must make forget
      readers.restore(folder);
      EXPECT_EQ(testing::all_weights(readers.model(reading - 1)), testing::all_weights(whole.model(0)));
      for (int64_t i = 2; i < 4; ++i) EXPECT_EQ(readers.train(i), alone.train(i));
      EXPECT_EQ(testing::all_weights(readers.model(reading - 1)), testing::all_weights(alone.model(0)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SharedOutOptimizer, ::testing::ValuesIn(shared_variants()),
                         [](const auto& info) { return info.param.name; });

class SharedOutSnapshot : public ::testing::Test {
 protected:
  SharedOutSnapshot() {
    TinyOptions options = shared_variants()[0].options;
    Ranks ranks(model_.path(), 2, options);
    ranks.train(0);
    ranks.save(folder_.path(), CheckpointCopy::kMemory);
    bytes_ = ranks.model(1).bytes();
    alone_ = Ranks(model_.path(), 1, options).model(0).bytes();
  }

  std::string error_of_reading() {
    Ranks reader(model_.path(), 1, shared_variants()[0].options);
    return message_of<UserError>([&] { reader.restore(folder_.path()); });
  }

  fs::path part(int number) const {
    return folder_.path() / ("actor.optimizer-0000" + std::to_string(number) + "-of-00002.safetensors");
  }

  const TinyFolder model_;
  const TemporaryFolder folder_;
  engine::ModelBytes bytes_, alone_;
};

TEST_F(SharedOutSnapshot, HasAFileOfEachOwner) {
  EXPECT_TRUE(fs::exists(part(1)));
  EXPECT_TRUE(fs::exists(part(2)));
  EXPECT_FALSE(fs::exists(folder_.path() / "actor.optimizer.safetensors"));
  EXPECT_TRUE(fs::exists(folder_.path() / "actor" / "model.safetensors"));
}

// The second of two, whose part is the smaller one: in blocks.
TEST_F(SharedOutSnapshot, TakesTheMemoryOfWhatIsOwned) {
  EXPECT_LT(bytes_.optimizer, alone_.optimizer * 0.55);
  EXPECT_EQ(bytes_.copies, bytes_.optimizer + bytes_.optimizer / 2);  // weights, too
}

TEST_F(SharedOutSnapshot, WithoutOneOfThemIsRefused) {
  fs::remove(part(1));
  EXPECT_NE(error_of_reading().find(part(1).string()), std::string::npos) << error_of_reading();
}

TEST_F(SharedOutSnapshot, WithAPartThatIsThereTwiceIsRefused) {
  fs::remove(part(2));
  fs::copy_file(part(1), part(2));
  EXPECT_NE(error_of_reading().find("has elements that another one has too"), std::string::npos) << error_of_reading();
}

}  // namespace
}  // namespace sluice::nodes::shared_out_optimizer_test
