#include "cli/checkpoints/checkpoint_list.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "tests/golden.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::checkpoint_list_test {
namespace {

using ::testing::HasSubstr;

ListedCheckpoint listed(int64_t iterations, double score, int64_t bytes, const std::string& damage = {}) {
  engine::Manifest manifest;
  manifest.saved_at = "2026-01-31T18:0" + std::to_string(iterations / 100) + ":00Z";
  manifest.iterations = iterations;
  manifest.metrics = {{"reward/score_mean", score}, {"reference/kl_mean", 0.0213}};
  return {.place = {iterations, "runs/ppo/checkpoints/" + std::to_string(iterations)},
          .manifest = manifest,
          .bytes = bytes,
          .damage = damage};
}

std::vector<ListedCheckpoint> four() {
  std::vector<ListedCheckpoint> all = {
      listed(80, 0.47, 8'400'000), listed(100, std::numeric_limits<double>::quiet_NaN(), 8'400'000),
      listed(120, 0.8125, 8'400'000,
             "actor/model.safetensors: tensor \"lm_head.weight\" has another checksum than when it was saved"),
      listed(140, 0, 1200, "manifest.json is missing")};
  all.back().manifest.reset();
  return all;
}

TEST(CheckpointList, Text) { expect_golden("cli/checkpoints/four.txt", checkpoints_text(four(), "runs/ppo")); }

TEST(CheckpointList, MetricThatTheRunKeepsTheBestOfIsTheOneToShow) {
  auto all = four();
  all[2].manifest->pipeline = {{.table = "checkpoint", .key = "keep_best", .text = "\"reference/kl_mean\"", .origin = {}}};
  EXPECT_THAT(checkpoints_text(all, "runs/ppo"), HasSubstr("  reference/kl_mean  "));
}

TEST(CheckpointList, WithoutAFigureTheRestIsThere) {
  auto one = listed(80, std::numeric_limits<double>::quiet_NaN(), 8'400'000);
  EXPECT_EQ(checkpoints_text({one}, "runs/sft"),
            "  iterations  saved at              size\n"
            "          80  2026-01-31T18:00:00Z  8.4 MB  intact\n"
            "rlhf-run resume runs/sft goes on from 80\n");
}

TEST(CheckpointList, OfACompleteRunSaysWithWhatItGoesOn) {
  const auto last_line = [](int64_t iterations, int64_t done) {
    const engine::RunStatus end{.state = "done", .iterations = iterations, .iterations_done = done};
    const std::string text = checkpoints_text({listed(80, 0.5, 10)}, "runs/ppo", end);
    return text.substr(text.find("intact\n") + 7);
  };
  EXPECT_EQ(last_line(80, 80),
            "the run is complete: rlhf-run resume runs/ppo --set pipeline.iterations=N goes on from 80, with N above it\n");
  EXPECT_EQ(last_line(120, 80),
            "the run is complete: rlhf-run resume runs/ppo --set pipeline.stop_when.KEY=VALUE goes on from 80, if that does not "
            "stop it\n");
  EXPECT_EQ(last_line(120, 120), "rlhf-run resume runs/ppo goes on from 80\n");  // what came after it is lost
}

TEST(CheckpointList, NoneIntactIsSaid) {
  EXPECT_THAT(checkpoints_text({listed(80, 0.5, 10, "manifest.json is missing")}, "runs/ppo"), HasSubstr("none is intact\n"));
  EXPECT_EQ(checkpoints_text({}, "runs/ppo"), "runs/ppo has no checkpoints\n");
}

TEST(CheckpointList, JsonHasNullForWhatIsNotKnown) {
  const Json all = Json::parse(checkpoints_json(four()))["checkpoints"];
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["metrics"]["reward/score_mean"], 0.47);
  EXPECT_TRUE(all[0]["intact"] == true && all[0]["damage"].is_null());
  EXPECT_TRUE(all[1]["metrics"]["reward/score_mean"].is_null());
  EXPECT_TRUE(all[3]["metrics"].is_null() && all[3]["saved_at"].is_null() && all[3]["intact"] == false);
  EXPECT_EQ(all[3]["damage"], "manifest.json is missing");
}

TEST(CheckpointList, FolderWithoutARunIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<UserError>([&] { look_at_checkpoints(folder.path()); }), HasSubstr("is not the folder of a run"));
  folder.write("pipeline.toml", "");
  EXPECT_TRUE(look_at_checkpoints(folder.path()).empty());
}

TEST(CheckpointList, CheckpointWithoutAManifestIsDamaged) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "checkpoints/7/actor");
  folder.write("checkpoints/7/actor/config.json", "12345");
  const auto all = look_at_checkpoints(folder.path());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].place.iterations, 7);
  EXPECT_EQ(all[0].bytes, 5);
  EXPECT_EQ(all[0].damage, "manifest.json is missing");
  EXPECT_FALSE(all[0].manifest);
}

}  // namespace
}  // namespace sluice::cli::checkpoint_list_test
