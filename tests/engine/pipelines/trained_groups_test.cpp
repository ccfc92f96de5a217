// Which groups are trained, and in which order, follows from what was drawn alone, not from how long each took. Systems that
// train what is done first prefer short answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/run/run.h"
#include "tests/engine/random_pipeline.h"
#include "tests/engine/run_outcome.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::trained_groups_test {
namespace {

namespace fs = std::filesystem;
using toy::RandomPath;

constexpr const char* kTrained = "last";  // the step in front of the trainer, and the column that it writes
constexpr uint64_t kPaths = tests::kSanitized ? 10 : 30;

struct SeenGroup {
  int64_t iteration = 0, index = 0, tokens = 0;
  std::vector<int64_t> values;  // of its samples

  bool operator==(const SeenGroup&) const = default;
};

void PrintTo(const SeenGroup& group, std::ostream* out) {
  *out << "group " << group.index << " of iteration " << group.iteration << " with " << group.tokens << " tokens";
}

std::vector<SeenGroup> groups_of(const WrittenColumns& columns, std::span<const int64_t> values) {
  std::vector<SeenGroup> groups;
  const auto samples = columns.layout.samples_by_group();
  const auto tokens = columns.layout.tokens_by_sample();
  for (size_t g = 0; g < samples.size(); ++g) {
    SeenGroup& group = groups.emplace_back(SeenGroup{.iteration = columns.iteration, .index = columns.group_indices[g]});
    for (size_t s = samples[g].begin; s < samples[g].end; ++s) {
      group.tokens += static_cast<int64_t>(tokens[s].size());
      group.values.push_back(values[s]);
    }
  }
  return groups;
}

/// What is drawn and what is trained, each in its order. Each list has one writer, the executor of the node.
class SeenGroups final : public WorkObserver {
 public:
  void wrote(const WrittenColumns& columns) override {
    add(columns, toy::kDrawn.spec(), drawn);
    add(columns, {kTrained, DType::kInt64, Extent::kSample}, trained);
  }

  /// A run that goes on makes later iterations again.
  void forget_from(int64_t iteration) {
    for (auto* groups : {&drawn, &trained})
      std::erase_if(*groups, [&](const SeenGroup& group) { return group.iteration >= iteration; });
  }

  std::vector<SeenGroup> drawn, trained;

 private:
  static void add(const WrittenColumns& columns, const ColumnSpec& spec, std::vector<SeenGroup>& groups) {
    const ColumnData* const data = columns.find(spec);
    if (data == nullptr) return;
    for (SeenGroup& group : groups_of(columns, data->entries<int64_t>())) groups.push_back(std::move(group));
  }
};

double mean_tokens(const std::vector<SeenGroup>& groups) {
  double tokens = 0;
  for (const SeenGroup& group : groups) tokens += static_cast<double>(group.tokens);
  return tokens / static_cast<double>(groups.size());
}

class TrainedGroups : public ::testing::Test {
 protected:
  TrainedGroups() { toy::register_toys(registry_); }

  // A random graph with a step in front of the trainer.
  static RandomPath path_of(uint64_t seed) {
    RandomPath path = toy::random_path(seed);
    path.iterations += 4;
    path.remembers = true;
    RandomPath::Step last{.name = kTrained, .inputs = {path.train_input}, .reads = {path.trained_column}};
    last.stream = path.steps.back().filters() ? path.steps.back().name : path.steps.back().stream;
    path.steps.push_back(last);
    path.train_input = path.trained_column = kTrained;
    return path;
  }

  Plan plan_of(const RandomPath& path, uint64_t seed) {
    PipelineSpec spec = toy::spec_of(path, seed, seed % 3 == 0 ? 60 : 0, toy::budget_of(path, registry_));
    spec.checkpoint.entries.push_back({"every_iterations", {}, {.data = int64_t{2}, .where = {}, .base = {}}});
    spec.runtime.entries.push_back({"grace_seconds", {}, {.data = int64_t{0}, .where = {}, .base = {}}});
    CheckResult checked = check(spec, registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    return std::move(*checked.plan);
  }

  // Cut off after some iterations, at random, and gone on with.
  SeenGroups run(const RandomPath& path, uint64_t seed, bool interrupts = false) {
    const Plan plan = plan_of(path, seed);
    const fs::path folder = folder_.path() / "run";
    start_over(folder);
    SeenGroups seen;
    RandomStream random(seed, 9);
    for (RunEnd end = RunEnd::kInterrupted; end != RunEnd::kDone;) {
      const auto until = static_cast<int64_t>(random.below(static_cast<uint64_t>(path.iterations)));
      RunOptions options{.files = unsynced_disk(), .observers = {&seen}};
      if (interrupts) options.folder = folder, options.resume_from = newest_checkpoint(folder);
      seen.forget_from(options.resume_from.empty() ? 0 : std::stoll(options.resume_from.filename()));
      engine::Run* running = nullptr;
      options.on_iteration = [&](const IterationReport& report) {
        if (interrupts && report.iteration == until) running->interrupt();
      };
      engine::Run made(plan, std::move(options));
      running = &made;
      const RunSummary summary = made.execute();
      end = summary.end;
      if (end == RunEnd::kFailed || end == RunEnd::kStalled) {
        ADD_FAILURE() << "the run failed";
        return seen;
      }
    }
    return seen;
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

// Whatever the graph, the lag and the filters are: samples may take the longer the more tokens they have, or the fewer, or any
// time, and the run may be cut off and go on.
TEST_F(TrainedGroups, AreThoseThatWereDrawnInTheirOrderHoweverLongEachTakes) {
  int dropped = 0;
  for (uint64_t seed = 0; seed < kPaths; ++seed) {
    SCOPED_TRACE(seed);
    RandomPath path = path_of(seed);
    path.pace = "even";
    const SeenGroups expected = run(path, seed);
    const auto in_order = [](const SeenGroup& a, const SeenGroup& b) {
      return std::tie(a.iteration, a.index) < std::tie(b.iteration, b.index);
    };
    EXPECT_TRUE(std::ranges::is_sorted(expected.trained, in_order));
    dropped += expected.trained.size() < expected.drawn.size();
    for (const std::string pace : {"long_last", "long_first", "any"}) {
      path.pace = pace;
      path.timing_seed = static_cast<int64_t>(seed) + 1;
      const SeenGroups seen = run(path, seed, /*interrupts=*/pace != "long_last");
      ASSERT_EQ(seen.drawn, expected.drawn) << pace;
      ASSERT_EQ(seen.trained, expected.trained) << pace;
    }
  }
  EXPECT_GT(dropped, 0);
}

// Of three times as many groups as are missing a filter keeps the first that pass.
RandomPath replacing_path() {
  RandomPath path{.iterations = 12, .groups = 6, .samples = 2, .worst = 24, .spare = 10'000, .micro_batch = 96};
  path.most_draws = 3;
  path.oversample = 3;
  path.rollout_on = "cpu:1";
  path.steps.push_back(
      {.name = "filter", .inputs = {"rollout"}, .reads = {"drawn"}, .drop_one_in = 3, .refills = true, .on = "cpu"});
  path.steps.push_back({.name = kTrained, .inputs = {"filter"}, .reads = {"drawn"}, .stream = "filter", .on = "cpu"});
  return path;
}

TEST_F(TrainedGroups, AreAsLongAsThoseThatWereDrawn) {
  RandomPath path = replacing_path();
  path.pace = "long_last";
  const SeenGroups seen = run(path, 1);
  EXPECT_LT(seen.trained.size(), seen.drawn.size());
  EXPECT_NEAR(mean_tokens(seen.trained) / mean_tokens(seen.drawn), 1, 0.06);
}

// What the tests above would see of a rollout that hands groups on as they are done.
TEST_F(TrainedGroups, OfAScheduleThatTrainsWhatIsDoneFirstAreTooShort) {
  RandomPath path = replacing_path();
  path.first_done_first = true;
  path.pace = "long_last";
  const SeenGroups short_first = run(path, 1);
  path.pace = "long_first";
  const SeenGroups long_first = run(path, 1);
  EXPECT_NE(short_first.trained, long_first.trained);
  EXPECT_LT(mean_tokens(short_first.trained) / mean_tokens(short_first.drawn), 0.9);
  EXPECT_GT(mean_tokens(long_first.trained) / mean_tokens(long_first.drawn), 1.1);
}

}  // namespace
}  // namespace sluice::engine::trained_groups_test
