#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "engine/checkpoint_folder.h"
#include "engine/pipeline_builder.h"
#include "engine/run.h"
#include "tests/engine/random_world.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;
using toy::World;

// Lines of metrics.jsonl without what depends on timing.
std::vector<std::string> metrics_of(const fs::path& folder) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(folder / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    Json kept = Json::object();
    const Json figures = parse_json(line, "metrics.jsonl");
    for (const auto& [name, value] : figures.items()) {
      if (!name.ends_with("_seconds") && !name.ends_with("_per_second") && !name.ends_with("_max") &&
          !name.starts_with("resident_"))
        kept[name] = value;
    }
    lines.push_back(kept.dump());
  }
  return lines;
}

// Of each piece of work that is told by its micro-batch or as an end: how often trace.json has it.
std::map<std::string, int> slices_of(const fs::path& folder) {
  std::map<std::string, int> slices;
  for (const Json& event : read_json(folder / "trace.json")) {
    if (event["ph"] != "X" || !event["args"].contains("micro_batch")) continue;
    ++slices[event["name"].get<std::string>() + " " + event["args"]["iteration"].dump() + " " +
             event["args"]["micro_batch"].dump()];
  }
  return slices;
}

std::string weights_of(const fs::path& folder) {
  const fs::path path = folder / "checkpoint" / "policy" / "weights";
  return fs::exists(path) ? read_file(path) : std::string();
}

std::map<std::string, NodeState> states_of(const fs::path& folder) { return read_manifest(folder / "checkpoint").nodes; }

fs::path newest(const fs::path& folder) {
  std::vector<DamagedCheckpoint> damaged;
  const auto place = newest_intact(folder, damaged);
  EXPECT_TRUE(damaged.empty());
  return place ? place->folder : fs::path();
}

void start_over(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
}

struct Disturbance {
  enum class Kind { kNone, kInterrupt, kInterruptWithoutGrace, kFailure } kind = Kind::kNone;
  int64_t iteration = 0;  // behind which it comes
};

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() { toy::register_toys(registry_); }

  Plan plan_of(const World& world, uint64_t seed, const Disturbance& disturbance) {
    PipelineSpec spec = toy::spec_of(world, seed, seed % 2 == 0 ? 0 : 60, toy::budget_of(world, registry_));
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

  RunSummary run(const World& world, uint64_t seed, const fs::path& folder, const Disturbance& disturbance) {
    const Plan plan = plan_of(world, seed, disturbance);
    const fs::path checkpoint = newest(folder);
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

// Whatever the graph, and wherever it is cut off: what a run amounts to that goes on is what it amounts to undisturbed.
TEST_F(ResumeTest, OfARandomGraphGivesWhatAnUndisturbedRunGives) {
  int cut_short = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    World world = toy::random_world(seed);
    world.iterations += 5;
    world.remembers = true;
    const fs::path whole = folder_.path() / "whole", parts = folder_.path() / "parts";
    start_over(whole);
    start_over(parts);
    ASSERT_EQ(run(world, seed, whole, {}).end, RunEnd::kDone);
    RandomStream random(seed, 2);
    for (RunEnd end = RunEnd::kInterrupted; end != RunEnd::kDone;) {
      const Disturbance disturbance{.kind = static_cast<Disturbance::Kind>(random.below(4)),
                                    .iteration = static_cast<int64_t>(random.below(static_cast<uint64_t>(world.iterations)))};
      end = run(world, seed, parts, disturbance).end;
      cut_short += end != RunEnd::kDone;
    }
    EXPECT_EQ(metrics_of(parts), metrics_of(whole));
    EXPECT_EQ(slices_of(parts), slices_of(whole));
    EXPECT_EQ(weights_of(parts), weights_of(whole));
    EXPECT_EQ(states_of(parts), states_of(whole));
    if (HasFailure()) return;
  }
  EXPECT_GT(cut_short, 50);
}

TEST_F(ResumeTest, OfACompleteRunHasNothingToDo) {
  World world = toy::random_world(3);
  world.iterations = 4;
  const fs::path folder = folder_.path() / "run";
  start_over(folder);
  ASSERT_EQ(run(world, 3, folder, {}).end, RunEnd::kDone);
  const auto metrics = metrics_of(folder);
  const auto slices = slices_of(folder);
  const RunSummary again = run(world, 3, folder, {});
  EXPECT_EQ(again.end, RunEnd::kDone);
  EXPECT_EQ(again.iterations, 4);
  EXPECT_EQ(metrics_of(folder), metrics);
  EXPECT_EQ(slices_of(folder), slices);
}

TEST_F(ResumeTest, WithMoreIterationsGoesOnBehindTheEnd) {
  World world = toy::random_world(5);
  world.iterations = 4;
  const fs::path folder = folder_.path() / "run", whole = folder_.path() / "whole";
  start_over(folder);
  start_over(whole);
  ASSERT_EQ(run(world, 5, folder, {}).end, RunEnd::kDone);
  world.iterations = 9;
  ASSERT_EQ(run(world, 5, folder, {}).end, RunEnd::kDone);
  ASSERT_EQ(run(world, 5, whole, {}).end, RunEnd::kDone);
  EXPECT_EQ(metrics_of(folder), metrics_of(whole));
}

TEST_F(ResumeTest, RefusesWhatChangesResultsAndNamesEveryKey) {
  World world = toy::random_world(3);
  world.iterations = 2;
  const fs::path folder = folder_.path() / "run";
  start_over(folder);
  ASSERT_EQ(run(world, 3, folder, {}).end, RunEnd::kDone);
  ++world.samples;
  world.iterations = 4;
  const auto refused = message_of<UserError>([&] { run(world, 4, folder, {}); });
  EXPECT_THAT(refused, testing::AllOf(testing::HasSubstr("[pipeline] seed: 3 -> 4"),
                                      testing::HasSubstr("[nodes.rollout] samples_per_group"),
                                      testing::HasSubstr("--accept-changes"), testing::Not(testing::HasSubstr("iterations"))));
  EXPECT_EQ(metrics_of(folder).size(), 2u) << "nothing may be cut before it is refused";
}

}  // namespace
}  // namespace sluice::engine
