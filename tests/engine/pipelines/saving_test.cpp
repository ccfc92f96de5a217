#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "engine/check/check.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/observe/engine_metrics.h"
#include "engine/run/run.h"
#include "tests/engine/toy_world.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/files/split_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::saving_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// Of every file in the checkpoints but the manifests, which know when they were written.
std::map<std::string, std::string> contents(const fs::path& run_folder) {
  std::map<std::string, std::string> files;
  for (const CheckpointPlace& place : list_checkpoints(run_folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(place.folder)) {
      const std::string name = std::to_string(place.iterations) + "/" + entry.path().lexically_relative(place.folder).string();
      if (entry.is_regular_file() && entry.path().filename() != kManifestName) files[name] = read_file(entry.path());
    }
  }
  return files;
}

const PipelineBuilder::Params kInPlace{
    {"every_iterations", int64_t{1}}, {"keep_last", int64_t{0}}, {"copy", std::string("none")}};

PipelineBuilder::Params in_place_and(const std::string& key, const PipelineBuilder::Data& value) {
  PipelineBuilder::Params params = kInPlace;
  params.emplace_back(key, value);
  return params;
}

class SavingTest : public ::testing::Test {
 protected:
  SavingTest() { toy::register_toys(registry_); }

  /// With two models, which are trained on threads of their own. `fails_in`: the iteration in which a node beside them fails.
  RunSummary run_two(const PipelineBuilder::Params& checkpoint, RunOptions options = {.files = unsynced_disk()},
                     int64_t fails_in = -1) {
    PipelineBuilder builder("saving", 8);
    builder.budget(64, 8).set("runtime", "cores", int64_t{4}).model("policy", {}).model("other", {});
    builder.set("runtime", "stall_seconds", stall_seconds_);
    for (const auto& [key, value] : checkpoint) builder.set("checkpoint", key, value);
    const std::string drawn = "drawn", policy = "policy", other = "other";
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{2}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", policy}});
    builder.node("train", "toy_train", {"rollout"}, {{"model", policy}, {"reads", drawn}}, "cpu:1");
    builder.node("train_other", "toy_train", {"rollout"}, {{"model", other}, {"reads", drawn}}, "cpu:2");
    builder.node("publish", "toy_publish", {"train"}, {{"model", policy}});
    builder.node("mix", "toy_mix", {"rollout"},
                 {{"reads", Array{{.data = drawn, .where = {}, .base = {}}}},
                  {"writes", std::string("mixed")},
                  {"pause_us", int64_t{fails_in < 0 ? 0 : 20'000}},
                  {"fail_in_iteration", fails_in}},
                 "cpu:3");
    PipelineSpec spec = builder.build();
    std::ranges::find(spec.nodes, "train_other", [](const NodeSpec& node) { return node.name.text; })->metrics_prefix.text =
        "other";  // as both record the same metric
    const CheckResult checked = check(spec, registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    options.folder = folder_.path();
    return engine::Run(*checked.plan, std::move(options)).execute();
  }

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
  double stall_seconds_ = 600;
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
    const std::string copy = at % 2 == 0 ? "memory" : "none";
    const RunSummary summary = run({{"every_iterations", int64_t{1}}, {"copy", copy}}, std::move(options));
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

// A cut that becomes due while another is written is passed over, in either way: those that both have are compared.
TEST_F(SavingTest, WithoutACopyWritesTheSameBytes) {
  run_two({{"every_iterations", int64_t{1}}, {"keep_last", int64_t{0}}, {"copy", std::string("memory")}});
  const auto copied = contents(folder_.path());
  fs::remove_all(folder_.path());
  fs::create_directories(folder_.path());
  EXPECT_EQ(run_two(kInPlace).end, RunEnd::kDone);
  EXPECT_TRUE(all_intact(folder_.path()));
  EXPECT_TRUE(leftovers(folder_.path()).empty());
  int both = 0;
  for (const auto& [name, bytes] : contents(folder_.path())) {
    const auto same = copied.find(name);
    if (same == copied.end()) continue;
    EXPECT_EQ(bytes, same->second) << name;
    ++both;
  }
  EXPECT_GE(both, 2);  // the two models of the last checkpoint at least
}

TEST_F(SavingTest, WithoutACopyRemovesWhatACrashHasLeftBeforeTheFirstModelIsWritten) {
  for (const char* left : {"1.tmp", "2.tmp"}) {
    fs::create_directories(folder_.path() / "checkpoints" / left / "policy");
    std::ofstream(folder_.path() / "checkpoints" / left / "policy" / "stale") << "of another life";
  }
  EXPECT_EQ(run_two(kInPlace).end, RunEnd::kDone);
  EXPECT_TRUE(all_intact(folder_.path()));
  EXPECT_TRUE(leftovers(folder_.path()).empty());
  for (const auto& [name, bytes] : contents(folder_.path())) EXPECT_EQ(name.find("stale"), std::string::npos) << name;
}

// The node beside them fails when the models may be written already: nothing of that stays.
TEST_F(SavingTest, WithoutACopyLeavesNothingOfACutThatIsNeverComplete) {
  for (const int64_t iteration : {0, 1, 3}) {
    SCOPED_TRACE(iteration);
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    EXPECT_EQ(run_two(kInPlace, {.files = unsynced_disk()}, iteration).end, RunEnd::kFailed);
    EXPECT_TRUE(leftovers(folder_.path()).empty());
    EXPECT_TRUE(all_intact(folder_.path()));
  }
}

// Whichever operation fails, on whichever node's thread: the cut is dropped with a warning, and later ones are saved.
TEST_F(SavingTest, WithoutACopyGoesOnWhenSomethingCannotBeWrittenOnce) {
  for (int64_t at = 0; at < 40; at += 3) {
    SCOPED_TRACE(at);
    fs::remove_all(folder_.path());
    fs::create_directories(folder_.path());
    FaultyFileSystem once({.kind = Fault::Kind::kFails, .at = at, .error = ENOSPC}, unsynced_disk());
    SplitFileSystem files("checkpoints", once, unsynced_disk());
    const RunSummary summary = run_two(kInPlace, {.files = files});
    EXPECT_TRUE(all_intact(folder_.path()));
    EXPECT_TRUE(leftovers(folder_.path()).empty());
    const bool strikes_the_last = at > 10 && summary.end == RunEnd::kFailed;  // how many there are before it is up to time
    if (strikes_the_last) continue;
    EXPECT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
    EXPECT_EQ(summary.last_checkpoint, folder_.path() / "checkpoints" / "8");
  }
}

// Takes long over the first folder of a model.
class SlowDisk final : public ForwardingFileSystem {
 public:
  SlowDisk() : ForwardingFileSystem(unsynced_disk()) {}

  int make_folder(const fs::path& path) override {
    if (path.filename() == "policy" && !std::exchange(slept_, true)) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    return ForwardingFileSystem::make_folder(path);
  }

 private:
  bool slept_ = false;
};

TEST_F(SavingTest, WithoutACopyASlowDiskIsNoStall) {
  SlowDisk disk;
  double waited = 0;
  RunOptions options{.files = disk, .on_iteration = [&](const IterationReport& report) {
                       for (const auto& [name, value] : report.metrics) waited += name == metrics::kCheckpointSeconds ? value : 0;
                     }};
  stall_seconds_ = 1.5;  // which a machine with much else to do may take for anything else
  const RunSummary summary = run_two(kInPlace, std::move(options));
  EXPECT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
  EXPECT_GE(waited, 2.5);
}

TEST_F(SavingTest, WithoutACopyOnAFullDiskStopsWhereItIsToldTo) {
  FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = 0, .error = ENOSPC}, unsynced_disk());
  SplitFileSystem files("checkpoints", full, unsynced_disk());
  const RunSummary summary = run_two(in_place_and("on_failure", std::string("stop")), {.files = files});
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
    EXPECT_THAT(message, ::testing::AllOf(HasSubstr(folder_.path().string()), HasSubstr("No space left on device")));
    EXPECT_TRUE(all_intact(folder_.path()));
  }
}

// They only show the run. Whichever of their operations fails, the run goes on, and says once which file it gives up.
TEST_F(SavingTest, OnADiskThatHasNoRoomForWhatOnlyShowsTheRunItGoesOn) {
  const std::map<std::string, int64_t> operations_before{// the run, which does not begin if they fail
                                                         {"trace.json", 2},
                                                         {"events.out.tfevents.", 2},
                                                         {"memory.json", 0},
                                                         {"costs.json", 0},
                                                         {"status.json", 0}};
  for (const auto& [file, before] : operations_before) {
    for (const int64_t at : {before, before + 1, before + 2}) {
      SCOPED_TRACE(file + " " + std::to_string(at));
      fs::remove_all(folder_.path());
      fs::create_directories(folder_.path());
      FaultyFileSystem full({.kind = Fault::Kind::kDiskIsFull, .at = at, .error = ENOSPC}, unsynced_disk());
      SplitFileSystem files(file, full, unsynced_disk());
      std::vector<std::string> warnings;
      RunOptions options{.files = files, .on_warning = [&](const std::string& text) { warnings.push_back(text); }};
      const RunSummary summary = run({{"every_iterations", int64_t{2}}}, std::move(options), /*pause_us=*/5'000);
      EXPECT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
      EXPECT_EQ(summary.last_checkpoint, folder_.path() / "checkpoints" / "8");
      EXPECT_TRUE(all_intact(folder_.path()));
      if (!full.struck()) continue;  // it had fewer operations
      ASSERT_EQ(warnings.size(), 1u) << "once, " << ::testing::PrintToString(warnings);
      EXPECT_THAT(warnings.front(),
                  ::testing::AllOf(HasSubstr((folder_.path() / file).string()), HasSubstr("No space left on device")));
    }
  }
}

}  // namespace
}  // namespace sluice::engine::saving_test
