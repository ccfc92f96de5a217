#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "engine/check/check.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::saving_on_ranks_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::MailInOneProcess;

constexpr int64_t kIterations = 5;
constexpr int kRanks = 3;

std::string failure_of(const RunSummary& summary) {
  try {
    if (summary.error) std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

// Of a run on three ranks whose two models are trained on threads of their own.
struct SavedRun {
  std::vector<std::string> failures;  // of the ranks
  std::vector<std::string> warnings;  // of rank 0
};

class SavingOnRanks : public ::testing::TestWithParam<const char*> {
 protected:
  SavingOnRanks() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  // `files`: of rank 1.
  SavedRun run(const fs::path& folder, FileSystem& files, const std::string& on_failure, uint64_t seed = 0) {
    const CheckResult checked = check(pipeline(on_failure), registry_, kRanks);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    MailInOneProcess mail(kRanks, seed, /*pause_us=*/seed == 0 ? 0 : 100);
    std::vector<std::unique_ptr<MailedReductions>> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
    SavedRun done;
    done.failures.resize(kRanks);
    std::vector<std::unique_ptr<engine::Run>> runs;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      RunOptions options{.folder = folder, .writes_folder = rank == 0, .files = rank == 1 ? files : unsynced_disk()};
      if (rank == 0) options.on_warning = [&](const std::string& warning) { done.warnings.push_back(warning); };
      options.reductions = ranks[rank].get();
      runs.push_back(std::make_unique<engine::Run>(*checked.plan, std::move(options)));
    }
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        done.failures[rank] = failure_of(runs[rank]->execute());
        // As the heartbeat does it.
        if (done.failures[rank].empty()) return;
        for (size_t other = 0; other < kRanks; ++other)
          if (other != rank)
            runs[other]->fail(std::make_exception_ptr(UserError("rank " + std::to_string(rank) + " failed", "")));
      });
    threads.clear();
    mail.close();
    return done;
  }

  // That every checkpoint has the parts of all ranks, of its iteration. Returns which there are.
  static std::vector<int64_t> whole_checkpoints(const fs::path& folder) {
    std::vector<int64_t> found;
    for (const CheckpointPlace& place : list_checkpoints(folder)) {
      EXPECT_FALSE(damage_of(place.folder)) << place.folder;
      for (const std::string model : {"policy", "other"}) {
        const std::string weights = read_file(place.folder / model / "weights");
        for (int rank = 1; rank < kRanks; ++rank)
          EXPECT_EQ(read_file(place.folder / model / ("part-" + std::to_string(rank))), weights) << place.folder;
      }
      found.push_back(place.iterations);
    }
    return found;
  }

 private:
  PipelineSpec pipeline(const std::string& on_failure) const {
    PipelineBuilder builder("saving", kIterations);
    builder.budget(64 * kRanks, 8).set("runtime", "cores", int64_t{4}).model("policy", {}).model("other", {});
    for (const auto& [key, value] : PipelineBuilder::Params{{"every_iterations", int64_t{1}},
                                                            {"keep_last", int64_t{0}},
                                                            {"copy", std::string(GetParam())},
                                                            {"on_failure", on_failure}})
      builder.set("checkpoint", key, value);
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{6}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}});
    builder.node("record", "tally_record", {"rollout"}, {}, "cpu:1");
    builder.node("whiten", "tally_whiten", {"record"}, {}, "cpu:1");
    builder.node("train", "tally_train", {"whiten"}, {{"model", std::string("policy")}});
    builder.node("train_other", "tally_train", {"whiten"}, {{"model", std::string("other")}}, "cpu:1");
    builder.node("publish", "toy_publish", {"train"}, {{"model", std::string("policy")}});
    PipelineSpec spec = builder.build();
    std::ranges::find(spec.nodes, "train_other", [](const NodeSpec& node) { return node.name.text; })->metrics_prefix.text =
        "other";
    return spec;
  }

  Registry registry_;

 protected:
  const TemporaryFolder folder_;
};

TEST_P(SavingOnRanks, EveryCheckpointHasThePartsOfAll) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const fs::path folder = folder_.path() / std::to_string(seed);
    fs::create_directories(folder);
    const SavedRun done = run(folder, unsynced_disk(), "stop", seed);
    EXPECT_EQ(done.failures, std::vector<std::string>(kRanks));
    EXPECT_EQ(done.warnings, std::vector<std::string>());
    const std::vector<int64_t> saved = whole_checkpoints(folder);
    ASSERT_FALSE(saved.empty());
    EXPECT_EQ(saved.back(), kIterations);
  }
}

// Wherever the disk of rank 1 is full: what is there is whole, and rank 0 names who could not save. A run that may go on does, but
// for its end: where that is not saved, the run has failed on all ranks.
TEST_P(SavingOnRanks, APartThatCannotBeSavedIsNamed) {
  fs::create_directories(folder_.path() / "whole");
  FaultyFileSystem counting({}, unsynced_disk());
  run(folder_.path() / "whole", counting, "continue");
  const int64_t operations = counting.operations();
  ASSERT_GT(operations, 10);
  for (int64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(at);
    const fs::path folder = folder_.path() / std::to_string(at);
    fs::create_directories(folder);
    FaultyFileSystem files({.kind = Fault::Kind::kDiskIsFull, .at = at, .error = ENOSPC}, unsynced_disk());
    const SavedRun done = run(folder, files, at % 2 == 0 ? "continue" : "stop");
    whole_checkpoints(folder);
    for (const std::string& failure : done.failures) EXPECT_EQ(failure.empty(), done.failures[0].empty()) << failure;
    const std::string said = done.failures[0] + (done.warnings.empty() ? "" : done.warnings.front());
    if (!files.struck()) continue;
    EXPECT_THAT(said, HasSubstr("rank 1 could not save its part of model '"));
  }
}

INSTANTIATE_TEST_SUITE_P(, SavingOnRanks, ::testing::Values("memory", "none"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::engine::saving_on_ranks_test
