#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/run/run.h"
#include "tests/engine/random_pipeline.h"
#include "tests/engine/run_outcome.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::resume_test {
namespace {

namespace fs = std::filesystem;
using toy::RandomPath;

struct Disturbance {
  enum class Kind { kNone, kInterrupt, kInterruptWithoutGrace, kFailure } kind = Kind::kNone;
  int64_t iteration = 0;  // after which it comes
};

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() { toy::register_toys(registry_); }

  Plan plan_of(const RandomPath& path, uint64_t seed, const Disturbance& disturbance) {
    PipelineSpec spec = toy::spec_of(path, seed, seed % 2 == 0 ? 0 : 60, toy::budget_of(path, registry_));
    const auto entry = [](const std::string& key, auto value) {
      return Entry{key, {}, {.data = value, .where = {}, .base = {}}};
    };
    spec.checkpoint.entries.push_back(entry("every_iterations", int64_t{2}));
    if (disturbance.kind == Disturbance::Kind::kInterruptWithoutGrace)
      spec.runtime.entries.push_back(entry("grace_seconds", int64_t{0}));
    CheckResult checked = check(spec, registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    return std::move(*checked.plan);
  }

  RunSummary run(const RandomPath& path, uint64_t seed, const fs::path& folder, const Disturbance& disturbance) {
    const Plan plan = plan_of(path, seed, disturbance);
    const fs::path checkpoint = newest_checkpoint(folder);
    if (checkpoint.empty()) start_over(folder);
    RunOptions options{.folder = folder, .resume_from = checkpoint, .files = unsynced_disk()};
    engine::Run* running = nullptr;
    options.on_iteration = [&](const IterationReport& report) {
      if (report.iteration < disturbance.iteration || disturbance.kind == Disturbance::Kind::kNone) return;
      if (disturbance.kind == Disturbance::Kind::kFailure) throw UserError("as asked");
      running->interrupt();
    };
    engine::Run made(plan, std::move(options));
    running = &made;
    return made.execute();
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

// Fewer where a sanitizer makes each many times slower.
constexpr uint64_t kGraphs = tests::kSanitized ? 36 : 120;

// Whatever the graph, and wherever it is cut off: what a run amounts to that goes on is what it amounts to undisturbed.
TEST_F(ResumeTest, OfARandomGraphGivesWhatAnUndisturbedRunGives) {
  uint64_t cut_short = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    RandomPath path = toy::random_path(seed);
    path.iterations += 5;
    path.remembers = true;
    const fs::path whole = folder_.path() / "whole", parts = folder_.path() / "parts";
    start_over(whole);
    start_over(parts);
    ASSERT_EQ(run(path, seed, whole, {}).end, RunEnd::kDone);
    RandomStream random(seed, 2);
    for (RunEnd end = RunEnd::kInterrupted; end != RunEnd::kDone;) {
      const Disturbance disturbance{.kind = static_cast<Disturbance::Kind>(random.below(4)),
                                    .iteration = static_cast<int64_t>(random.below(static_cast<uint64_t>(path.iterations)))};
      end = run(path, seed, parts, disturbance).end;
      cut_short += end != RunEnd::kDone;
    }
    EXPECT_EQ(outcome_of(parts), outcome_of(whole));
    if (HasFailure()) return;
  }
  EXPECT_GT(cut_short, kGraphs * 5 / 12);
}

TEST_F(ResumeTest, OfACompleteRunHasNothingToDo) {
  RandomPath path = toy::random_path(3);
  path.iterations = 4;
  const fs::path folder = folder_.path() / "run";
  start_over(folder);
  ASSERT_EQ(run(path, 3, folder, {}).end, RunEnd::kDone);
  const auto metrics = metrics_of(folder);
  const auto slices = slices_of(folder);
  const RunSummary again = run(path, 3, folder, {});
  EXPECT_EQ(again.end, RunEnd::kDone);
  EXPECT_EQ(again.iterations, 4);
  EXPECT_EQ(metrics_of(folder), metrics);
  EXPECT_EQ(slices_of(folder), slices);
}

TEST_F(ResumeTest, WithMoreIterationsGoesOnBehindTheEnd) {
  RandomPath path = toy::random_path(5);
  path.iterations = 4;
  const fs::path folder = folder_.path() / "run", whole = folder_.path() / "whole";
  start_over(folder);
  start_over(whole);
  ASSERT_EQ(run(path, 5, folder, {}).end, RunEnd::kDone);
  path.iterations = 9;
  ASSERT_EQ(run(path, 5, folder, {}).end, RunEnd::kDone);
  ASSERT_EQ(run(path, 5, whole, {}).end, RunEnd::kDone);
  EXPECT_EQ(metrics_of(folder), metrics_of(whole));
}

TEST_F(ResumeTest, RefusesWhatChangesResultsAndNamesEveryKey) {
  RandomPath path = toy::random_path(3);
  path.iterations = 2;
  const fs::path folder = folder_.path() / "run";
  start_over(folder);
  ASSERT_EQ(run(path, 3, folder, {}).end, RunEnd::kDone);
  ++path.samples;
  path.iterations = 4;
  const auto refused = message_of<UserError>([&] { run(path, 4, folder, {}); });
  EXPECT_THAT(
      refused,
      ::testing::AllOf(::testing::HasSubstr("[pipeline] seed: 3 -> 4"), ::testing::HasSubstr("[nodes.rollout] samples_per_group"),
                       ::testing::HasSubstr("--accept-changes"), ::testing::Not(::testing::HasSubstr("iterations"))));
  EXPECT_EQ(metrics_of(folder).size(), 2u) << "nothing may be cut before it is refused";
}

}  // namespace
}  // namespace sluice::engine::resume_test
