#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/error.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/contract/pipeline_builder.h"
#include "engine/run/run.h"
#include "tests/engine/toy_world.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/files/split_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const RunSummary& summary) {
  try {
    if (summary.error) std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

std::vector<int64_t> saved_in(const fs::path& folder) {
  std::vector<int64_t> iterations;
  for (const CheckpointPlace& place : list_checkpoints(folder)) iterations.push_back(place.iterations);
  return iterations;
}

// Whole checkpoints, none damaged.
bool all_intact(const fs::path& folder) {
  return std::ranges::none_of(list_checkpoints(folder),
                              [](const CheckpointPlace& place) { return damage_of(place.folder).has_value(); });
}

class SavingTest : public testing::Test {
 protected:
  SavingTest() { toy::register_toys(registry_); }

  RunSummary run(const PipelineBuilder::Params& checkpoint, RunOptions options = {.files = unsynced_disk()},
                 int64_t pause_us = 0) {
    PipelineBuilder builder("saving", 8);
    builder.budget(64, 8).set("runtime", "cores", int64_t{2}).model("policy", {});
    for (const auto& [key, value] : checkpoint) builder.set("checkpoint", key, value);
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{2}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"pause_us", pause_us}});
    builder.node("train", "toy_train", {"rollout"}, {{"model", std::string("policy")}, {"reads", std::string("drawn")}}, "cpu:1");
    builder.node("publish", "toy_publish", {"train"}, {{"model", std::string("policy")}});
    const CheckResult checked = check(builder.build(), registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    options.folder = folder_.path();
    return engine::Run(*checked.plan, std::move(options)).execute();
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

TEST_F(SavingTest, WithoutAWordHappensAtTheEnd) {
  const RunSummary summary = run({});
  EXPECT_EQ(summary.end, RunEnd::kDone);
  EXPECT_EQ(summary.last_checkpoint, folder_.path() / "checkpoints" / "8");
  EXPECT_THAT(saved_in(folder_.path()), ElementsAre(8));
}

TEST_F(SavingTest, KeepsTheLastOnes) {
  run({{"every_iterations", int64_t{2}}, {"keep_last", int64_t{1}}});
  EXPECT_THAT(saved_in(folder_.path()), ElementsAre(8));
}

TEST_F(SavingTest, ByTimeIsAtTheEndsOfIterations) {
  run({{"every_minutes", 1e-9}, {"keep_last", int64_t{0}}}, {.files = unsynced_disk()}, /*pause_us=*/30'000);
  EXPECT_GT(saved_in(folder_.path()).size(), 1u);
  EXPECT_TRUE(all_intact(folder_.path()));
}

TEST_F(SavingTest, GoesIntoAnotherFolderToWhichTheRunFolderHasALink) {
  const fs::path elsewhere = folder_.path() / "elsewhere";
  run({{"folder", elsewhere.string()}});
  EXPECT_EQ(fs::read_symlink(folder_.path() / "checkpoints"), elsewhere / folder_.path().filename());
  EXPECT_THAT(saved_in(folder_.path()), ElementsAre(8));
  EXPECT_TRUE(all_intact(folder_.path()));
}

TEST_F(SavingTest, DoesNotMixWithAnotherRunsCheckpoints) {
  const fs::path taken = folder_.path() / "elsewhere" / folder_.path().filename() / "20";
  fs::create_directories(taken);
  const RunSummary summary = run({{"folder", (folder_.path() / "elsewhere").string()}});
  EXPECT_EQ(summary.end, RunEnd::kFailed);
  EXPECT_THAT(message_of(summary), HasSubstr("already holds the checkpoints of another run"));
}

// The disk is full from some operation on: what was saved before stays, and the run does what it was told to.
TEST_F(SavingTest, OnAFullDiskWarnsAndGoesOnUntilTheEnd) {
  for (int64_t at = 0; at < 120; at += 7) {
    SCOPED_TRACE(at);
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = at, .error = ENOSPC}, unsynced_disk());
    SplitFileSystem files("checkpoints", full, unsynced_disk());
    std::string warning;
    int64_t last_iteration = -1;
    RunOptions options{.files = files,
                       .on_warning = [&](const std::string& text) { warning = text; },
                       .on_iteration = [&](const IterationReport& report) { last_iteration = report.iteration; }};
    const RunSummary summary = run({{"every_iterations", int64_t{1}}}, std::move(options));
    EXPECT_EQ(last_iteration, 7) << "a run goes on when it cannot be saved";
    EXPECT_TRUE(all_intact(folder_.path()));
    if (summary.end == RunEnd::kDone) continue;  // the fault came too late
    EXPECT_THAT(message_of(summary), HasSubstr("No space left on device"));
    EXPECT_EQ(summary.end, RunEnd::kFailed) << "what cannot be saved at the end is lost, and that is no success";
  }
}

TEST_F(SavingTest, OnAFullDiskStopsWhereItIsToldTo) {
  FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = 0, .error = ENOSPC}, unsynced_disk());
  SplitFileSystem files("checkpoints", full, unsynced_disk());
  const RunSummary summary = run({{"every_iterations", int64_t{1}}, {"on_failure", std::string("stop")}}, {.files = files});
  EXPECT_EQ(summary.end, RunEnd::kFailed);
  EXPECT_THAT(message_of(summary), HasSubstr("No space left on device"));
  EXPECT_THAT(saved_in(folder_.path()), ElementsAre());
}

// The metrics are the result of a run: without them it does not go on.
TEST_F(SavingTest, OnADiskThatIsFullForEverythingTheRunFailsAndNamesTheFile) {
  for (int64_t at = 0; at < 60; at += 7) {
    SCOPED_TRACE(at);
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = at, .error = ENOSPC}, unsynced_disk());
    std::string message;
    try {
      message = message_of(run({{"every_iterations", int64_t{1}}}, {.files = full}));
    } catch (const UserError& error) {
      message = error.what();  // before anything was run
    }
    EXPECT_THAT(message, testing::AllOf(HasSubstr(folder_.path().string()), HasSubstr("No space left on device")));
    EXPECT_TRUE(all_intact(folder_.path()));
  }
}

}  // namespace
}  // namespace sluice::engine
