#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "nodes/models/language_model.h"
#include "tests/files/crash_states.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::checkpoint_crash_test {
namespace {

namespace fs = std::filesystem;
using testing::all_weights;
using testing::publish;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

TinyOptions trained_options() {
  return {.optimizer = models::AdamWOptions{.learning_rate = 1e-2}, .readable_versions = 2, .saved_versions = 1};
}

void train_and_publish(LanguageModel& model, int64_t version) {
  for (const auto& [name, weight] : model.forward().transformer().weights().trainable())
    weight.mutable_grad().fill_(static_cast<double>(version));
  trained(model).optimizer().step(1.0);
  publish(model, version);
}

// A power cut at any moment of a save of a whole checkpoint: what is found loads as the model of one save or of the other.
TEST(CheckpointCrash, LeavesAModelThatLoadsAsItWasSaved) {
  const TemporaryFolder folder;
  const TinyFolder source;
  engine::Plan plan;
  plan.checkpoint.keep_last = 1;
  const auto model = tiny_model(source.path(), trained_options());
  const engine::SavedModels models{{model->name(), {.model = model, .versions = {.readable = 2, .saved = 1}}}};
  const fs::path run = folder.path() / "run", after = folder.path() / "after";
  fs::create_directories(run);
  std::map<int64_t, std::vector<float>> saved;
  const auto save = [&](int64_t iterations, FileSystem& files) {
    train_and_publish(*model, iterations);
    saved[iterations] = all_weights(*model);
    engine::CheckpointWriter writer({.plan = plan, .run_folder = run, .models = models, .files = files, .on_warning = {}});
    writer.begin(iterations);
    model->take_snapshot(models.begin()->second.versions.saved_with(iterations), engine::CheckpointCopy::kNone);
    writer.write_model(model->name());
    writer.finish({.iterations = iterations, .nodes = {}, .metrics = {}, .growing = {}});
  };
  save(1, unsynced_disk());
  RecordingFileSystem recorder(run, unsynced_disk());
  save(2, recorder);
  std::map<int64_t, int> found;
  for (const CrashState& state : crash_states(recorder.recording(), {.most = 24})) {
    SCOPED_TRACE(state.how);
    materialize(state, after);
    const auto [newest, damaged] = engine::newest_intact(after);
    ASSERT_TRUE(newest);
    ASSERT_TRUE(damaged.empty());
    const auto restored = tiny_model(source.path(), trained_options());
    restored->restore(newest->folder, models.begin()->second.versions.saved_with(newest->iterations));
    ASSERT_EQ(all_weights(*restored), saved.at(newest->iterations));
    ++found[newest->iterations];
  }
  EXPECT_GT(found[1], 10);
  EXPECT_GT(found[2], 3);
}

}  // namespace
}  // namespace sluice::nodes::checkpoint_crash_test
