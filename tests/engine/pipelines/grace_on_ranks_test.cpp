#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::grace_on_ranks_test {
namespace {

namespace fs = std::filesystem;
using testing::MailInOneProcess;
using testing::ParcelsInOneProcess;
using toy::RanksShape;
using Rows = std::vector<std::vector<std::pair<std::string, uint64_t>>>;  // numbers as their bits

// What a rank has when its run is over.
struct Ended {
  RunEnd end = RunEnd::kDone;
  int64_t iterations = 0;
  std::string failure;
  Rows rows;
};

// A rank that is interrupted when all ranks together have done so much work.
struct Signal {
  size_t rank = 0;
  int64_t at = 0;
};

// Counts the work of all ranks, and interrupts when it is time.
class SignalsByWork final : public WorkObserver {
 public:
  SignalsByWork(const std::vector<std::unique_ptr<Run>>& runs, std::vector<Signal> signals)
      : runs_(runs), signals_(std::move(signals)) {}

  void ended(const Slice&) override {
    const int64_t done = ++done_;
    for (const Signal& signal : signals_) {
      if (signal.at == done) runs_[signal.rank]->interrupt();
    }
  }
  int64_t done() const { return done_; }

 private:
  const std::vector<std::unique_ptr<Run>>& runs_;
  const std::vector<Signal> signals_;
  std::atomic<int64_t> done_ = 0;
};

// Numbers of all ranks, and how many of the ranks have agreed which iteration is the last.
class SeenReductions final : public Reductions {
 public:
  SeenReductions(Mail& mail, std::atomic<size_t>& agreed) : reductions_(mail), agreed_(agreed) {}

  World world() const override { return reductions_.world(); }
  void combine(const Key& key, Contribution mine, Done done) override {
    reductions_.combine(key, std::move(mine), std::move(done));
  }
  void give(const Key& key, std::string text) override { reductions_.give(key, std::move(text)); }
  std::vector<std::string> take_given(const Key& key) override { return reductions_.take_given(key); }
  void call() override { reductions_.call(); }
  void on_call(std::function<void()> called) override { reductions_.on_call(std::move(called)); }
  void abandon() override { reductions_.abandon(); }
  void abandon_behind(int64_t iteration) override {
    reductions_.abandon_behind(iteration);
    ++agreed_;
  }
  size_t open() const { return reductions_.open(); }

 private:
  MailedReductions reductions_;
  std::atomic<size_t>& agreed_;
};

std::string text_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

template <class Condition>
void wait_for(const char* what, const Condition& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);  // never reached unless something hangs
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) {
      ADD_FAILURE() << what << " did not come";
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Runs of all ranks of a world in one folder, of which each starts when this is made.
class RunsOfRanks {
 public:
  // `plan` outlives them.
  RunsOfRanks(const Plan& plan, const fs::path& folder, uint64_t seed, const std::vector<Signal>& signals = {})
      : mail_(plan.ranks, seed, plan.ranks > 1 ? 300 : 0),
        parcels_(plan.ranks, seed, plan.ranks > 1 ? 300 : 0),
        signals_(runs_, signals),
        ended_(ranks_of(plan)) {
    const std::vector<CheckpointPlace> saved = list_checkpoints(folder);
    for (size_t rank = 0; rank < ended_.size(); ++rank) {
      reductions_.push_back(std::make_unique<SeenReductions>(mail_.rank(static_cast<int>(rank)), agreed_));
      RunOptions options{.folder = folder,
                         .writes_folder = rank == 0,
                         .resume_from = saved.empty() ? fs::path() : saved.back().folder,
                         .accept_changes = true,  // pauses
                         .files = unsynced_disk(),
                         .on_iteration = [this, rank](const IterationReport& report) { note(rank, report); },
                         .observers = {&signals_},
                         .reductions = reductions_.back().get(),
                         .links = RankLinks{mail_.rank(static_cast<int>(rank)), parcels_.rank(static_cast<int>(rank))}};
      runs_.push_back(std::make_unique<Run>(plan, std::move(options)));
    }
    for (size_t rank = 0; rank < ended_.size(); ++rank) threads_.emplace_back([this, rank] { execute(rank); });
  }

  void interrupt(size_t rank) { runs_[rank]->interrupt(); }
  size_t agreed() const { return agreed_; }
  int64_t work() const { return signals_.done(); }

  // Waits for all to end.
  const std::vector<Ended>& ended() {
    threads_.clear();
    // Rank 0 does not wait for all that others tell it at their ends. Which iteration is the last stays open where a rank was
    // over.
    for (const auto& rank : reductions_) wait_for("what all ranks add together", [&] { return rank->open() <= 1; });
    mail_.close();
    parcels_.close();
    EXPECT_TRUE(mail_.failures().empty());
    EXPECT_TRUE(parcels_.failures().empty());
    return ended_;
  }

 private:
  static size_t ranks_of(const Plan& plan) { return static_cast<size_t>(plan.ranks); }

  void note(size_t rank, const IterationReport& report) {
    auto& row = ended_[rank].rows.emplace_back();
    for (const auto& [name, value] : report.metrics) {
      if (!depends_on_timing(name)) row.emplace_back(name, std::bit_cast<uint64_t>(value));
    }
  }

  void execute(size_t rank) {
    const RunSummary summary = runs_[rank]->execute();
    ended_[rank].end = summary.end;
    ended_[rank].iterations = summary.iterations;
    ended_[rank].failure = text_of(summary.error);
  }

  MailInOneProcess mail_;
  ParcelsInOneProcess parcels_;
  std::atomic<size_t> agreed_ = 0;
  std::vector<std::unique_ptr<SeenReductions>> reductions_;
  std::vector<std::unique_ptr<Run>> runs_;
  SignalsByWork signals_;
  std::vector<Ended> ended_;
  std::vector<std::jthread> threads_;
};

class GraceOnRanks : public ::testing::Test {
 protected:
  GraceOnRanks() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  Plan plan_of(const RanksShape& shape, uint64_t seed, int ranks, double grace_seconds, int64_t save_every = 0) {
    const PipelineSpec spec = toy::ranks_pipeline(shape, seed, [&](PipelineBuilder& builder) {
      builder.set("runtime", "grace_seconds", grace_seconds).set("runtime", "stall_seconds", 60.0);
      builder.set("checkpoint", "every_iterations", save_every).set("checkpoint", "keep_last", int64_t{0});
      builder.set("checkpoint", "copy", std::string(seed % 2 == 0 ? "memory" : "none"));
    });
    CheckResult checked = check(spec, registry_, ranks);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    return std::move(*checked.plan);
  }

  fs::path new_folder(const std::string& name) {
    const fs::path folder = folder_.path() / name;
    fs::remove_all(folder);
    fs::create_directories(folder);
    return folder;
  }

  static Rows first(const Rows& rows, int64_t count) { return {rows.begin(), rows.begin() + count}; }

  // All have ended after the same iteration, alike, and that is what is saved.
  static void expect_one_end(const std::vector<Ended>& ended, const Rows& undisturbed, const fs::path& folder,
                             int64_t before = 0) {
    const int64_t iterations = ended.front().iterations;
    for (const Ended& rank : ended) {
      EXPECT_EQ(rank.failure, "");
      EXPECT_EQ(rank.end, ended.front().end);
      EXPECT_EQ(rank.iterations, iterations);
      EXPECT_EQ(rank.rows, Rows(undisturbed.begin() + before, undisturbed.begin() + iterations));
    }
    const std::vector<CheckpointPlace> saved = list_checkpoints(folder);
    ASSERT_EQ(saved.empty(), iterations == 0);
    EXPECT_TRUE(leftovers(folder).empty());
    if (saved.empty()) return;
    EXPECT_EQ(saved.back().iterations, iterations);
    for (const CheckpointPlace& place : saved) expect_parts_alike(place.folder, ended.size());
  }

  static void expect_parts_alike(const fs::path& checkpoint, size_t ranks) {
    EXPECT_FALSE(damage_of(checkpoint));
    for (const std::string model : {"policy", "other"}) {
      if (!fs::exists(checkpoint / model)) continue;
      const std::string weights = read_file(checkpoint / model / "weights");
      for (size_t rank = 1; rank < ranks; ++rank)
        EXPECT_EQ(read_file(checkpoint / model / ("part-" + std::to_string(rank))), weights) << checkpoint;
    }
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

// Fewer where a sanitizer makes each many times slower.
constexpr uint64_t kSeeds = tests::kSanitized ? 12 : 60;

// Every other one has groups made by other ranks: no barrier, and little credit.
RanksShape long_shape(uint64_t seed, const Registry& registry, int ranks) {
  RanksShape shape = toy::random_ranks_shape(seed);
  shape.trains = seed % 5 != 0;
  shape.trains_two = shape.trains && seed % 3 == 0;
  if (!shape.trains) shape.lag = 0;
  shape.iterations = shape.lag + 8;
  shape.pause_us = 0;
  if (seed % 2 == 0) return shape;
  shape.whitens = false;
  shape.groups += 12;
  shape.budget = toy::least_budget(shape, seed, registry, ranks);
  return shape;
}

// Whoever is interrupted, when, and with whatever grace, once or again and again: all ranks drop the same iterations, and what
// goes on is what nobody has disturbed.
class InterruptedAgainAndAgain : public GraceOnRanks {
 protected:
  void run(RanksShape shape, uint64_t seed, int ranks, int64_t pause_us) {
    RandomStream random(seed, 11);
    const Plan plan_of_whole = plan_of(shape, seed, ranks, 0);
    RunsOfRanks whole(plan_of_whole, new_folder("whole"), seed);
    const Rows undisturbed = whole.ended().front().rows;
    const fs::path folder = new_folder("cut");
    shape.pause_us = pause_us;
    int64_t before = 0;
    for (RunEnd end = RunEnd::kInterrupted; end != RunEnd::kDone && !HasFailure();) {
      const double grace = std::vector{0.0, 0.0, 0.06, 0.2, 20.0}[random.below(5)];
      std::vector<Signal> signals;
      for (uint64_t more = random.below(3) + 1; more > 0; --more)
        signals.push_back({.rank = random.below(static_cast<uint64_t>(ranks)),
                           .at = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(whole.work())))});
      const Plan plan = plan_of(shape, seed, ranks, grace, seed % 4 == 0 ? 2 : 0);
      RunsOfRanks runs(plan, folder, seed, signals);
      const std::vector<Ended>& ended = runs.ended();
      ASSERT_NO_FATAL_FAILURE(expect_one_end(ended, undisturbed, folder, before));
      end = ended.front().end;
      before = ended.front().iterations;
      cut_short_ += end == RunEnd::kInterrupted;
      dropped_ += runs.agreed() > 0;
    }
    if (!HasFailure()) EXPECT_EQ(before, static_cast<int64_t>(undisturbed.size()));
  }

  // How often it was so depends on timing.
  int64_t cut_short_ = 0, dropped_ = 0;
};

TEST_F(InterruptedAgainAndAgain, AllDropTheSame) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const int ranks = 2 + static_cast<int>(seed / 2 % 2);
    run(long_shape(seed, registry_, ranks), seed, ranks, /*pause_us=*/2000);
  }
  EXPECT_GT(cut_short_, 0) << "else it shows nothing";
  EXPECT_GT(dropped_, 0);
}

// It was interrupted while it measured: what leads had finished the iteration, and what measures waited for ever.
TEST_F(InterruptedAgainAndAgain, OneRankThatMeasuresEnds) {
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RanksShape shape = long_shape(seed, registry_, 1);
    shape.measures = true;
    run(shape, seed, 1, /*pause_us=*/seed % 3 == 0 ? 0 : 300);
  }
  EXPECT_GT(cut_short_, 0) << "else it shows nothing";
}

struct StuckCase {
  std::string node;
  bool at_the_end;
  int64_t iterations;  // that are complete then
};

class GraceBesideStuck : public GraceOnRanks, public ::testing::WithParamInterface<StuckCase> {};

// A rank is in a node that does not return while the grace of another one ends, or its own: the others do not wait for it to
// agree. Before a model can have changed on some rank the iteration is dropped; after that it is finished.
TEST_P(GraceBesideStuck, AllAgreeWithoutIt) {
  constexpr int kRanks = 3;
  RanksShape shape{.groups = 6, .samples = 2, .worst = 4, .micro_batch = 8, .lag = 0, .iterations = 7, .steps = 2};
  const Plan plan_of_whole = plan_of(shape, 1, kRanks, 0);
  RunsOfRanks whole(plan_of_whole, new_folder("whole"), 1);
  const Rows undisturbed = whole.ended().front().rows;
  for (int stuck = 0; stuck < kRanks; ++stuck) {
    for (size_t interrupted = 0; interrupted < kRanks; ++interrupted) {
      SCOPED_TRACE("rank " + std::to_string(stuck) + " is stuck, rank " + std::to_string(interrupted) + " is interrupted");
      const fs::path folder = new_folder("run"), until = folder / "until";
      shape.stuck = {
          .node = GetParam().node, .rank = stuck, .iteration = 2, .at_the_end = GetParam().at_the_end, .until = until.string()};
      const Plan plan = plan_of(shape, 1, kRanks, /*grace_seconds=*/0);
      RunsOfRanks runs(plan, folder, 1);
      wait_for("the call that does not return", [&] { return fs::exists(until.string() + ".reached"); });
      runs.interrupt(interrupted);
      wait_for("that all agree", [&] { return runs.agreed() == kRanks; });
      std::ofstream(until).close();
      const std::vector<Ended>& ended = runs.ended();
      ASSERT_NO_FATAL_FAILURE(expect_one_end(ended, undisturbed, folder));
      EXPECT_EQ(ended.front().end, RunEnd::kInterrupted);
      EXPECT_EQ(ended.front().iterations, GetParam().iterations);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GraceBesideStuck,
                         ::testing::Values(StuckCase{"record", false, 2}, StuckCase{"train", false, 2},
                                           StuckCase{"train", true, 3}),
                         [](const auto& info) { return info.param.node + (info.param.at_the_end ? "AtTheEnd" : "Before"); });

}  // namespace
}  // namespace sluice::engine::grace_on_ranks_test
