#include "engine/checkpoint/checkpoint_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/temporary_folder.h"

namespace sluice::engine::checkpoint_room_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

PlanModel model(bool updated, int64_t saved_versions = 0) {
  PlanModel model{.name = "actor"};
  model.facts = {.snapshot_bytes = 300, .version_bytes = 100, .folder_bytes = 1000};
  model.usage.updated = updated;
  model.usage.versions.saved = saved_versions;
  return model;
}

Plan plan_with(std::vector<PlanModel> models, int64_t iterations, CheckpointSettings settings) {
  Plan plan;
  plan.models = std::move(models);
  plan.pipeline.iterations = iterations;
  plan.checkpoint = std::move(settings);
  return plan;
}

TEST(CheckpointRoom, IsThatOfFolderSnapshotAndOlderVersionsOfWhatIsTrained) {
  EXPECT_EQ(checkpoint_room(plan_with({model(true), model(true, 2), model(false, 2)}, 1, {})).bytes, 1300 + 1500);
}

TEST(CheckpointRoom, IsForThoseThatAreKeptAndTheNextOne) {
  const auto at_a_time = [](int64_t iterations, CheckpointSettings settings) {
    return checkpoint_room(plan_with({}, iterations, std::move(settings))).at_a_time;
  };
  EXPECT_EQ(at_a_time(100, {}), 1) << "only that at the end";
  EXPECT_EQ(at_a_time(100, {.every_iterations = 10}), 3);
  EXPECT_EQ(at_a_time(100, {.every_iterations = 10, .keep_best = "reward/score_mean"}), 4);
  EXPECT_EQ(at_a_time(20, {.every_iterations = 10}), 2) << "no more than are saved";
  EXPECT_EQ(at_a_time(100, {.every_iterations = 10, .keep_last = 0}), 10);
  EXPECT_EQ(at_a_time(100, {.every_iterations = 10, .keep_last = kMost, .keep_best = "reward/score_mean"}), 10);
  EXPECT_EQ(at_a_time(100, {.every_minutes = 1, .keep_last = 5}), 6);
}

TEST(LackOfRoom, IsToldWithWhatThereIsAndWhatIsWanted) {
  const TemporaryFolder folder;
  PlanModel large = model(true);
  large.facts.folder_bytes = kMost / 8;
  const Plan plan = plan_with({large}, 100, {.every_iterations = 10});
  EXPECT_THAT(lack_of_room(plan, folder.path()),
              Optional(HasSubstr("a checkpoint takes 1152922 TB, and there is to be room for 3 more of them: 3458765 TB")));
}

TEST(LackOfRoom, DoesNotCountCheckpointsThatAreThere) {
  const TemporaryFolder folder;
  PlanModel large = model(true);
  large.facts.folder_bytes = kMost / 8;
  const Plan plan = plan_with({large}, 100, {.every_iterations = 10});
  fs::create_directories(folder.path() / "checkpoints" / "10");
  EXPECT_THAT(lack_of_room(plan, folder.path()), Optional(HasSubstr("room for 2 more")));
  fs::create_directories(folder.path() / "checkpoints" / "20");
  fs::create_directories(folder.path() / "checkpoints" / "30");
  EXPECT_THAT(lack_of_room(plan, folder.path()), Optional(HasSubstr("room for 1 more"))) << "the one that is written beside them";
}

TEST(LackOfRoom, IsNoneWhereItSuffices) {
  const TemporaryFolder folder;
  EXPECT_FALSE(lack_of_room(plan_with({model(true)}, 100, {.every_iterations = 10}), folder.path()));
  EXPECT_FALSE(lack_of_room(plan_with({model(true)}, 100, {.folder = folder.path() / "not" / "yet"}), folder.path()));
  EXPECT_FALSE(lack_of_room(plan_with({model(true)}, 100, {}), folder.path() / "nowhere")) << "not known";
}

}  // namespace
}  // namespace sluice::engine::checkpoint_room_test
