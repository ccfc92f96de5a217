// An executor or the budget that fails: the run ends, says which it was, leaves nothing after (as AddressSanitizer sees), and
// goes on from its last checkpoint to the result of an undisturbed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/run/run.h"
#include "tests/engine/faulty_parts.h"
#include "tests/engine/random_pipeline.h"
#include "tests/engine/run_outcome.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::faults_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using toy::RandomPath;

// Of runs that are to stall; on a machine that has much else to do any may, the others have time.
constexpr double kStallSeconds = 0.5, kPatientSeconds = 600;

// Random graphs; fewer where a sanitizer makes each many times slower.
constexpr int kMany = tests::kSanitized ? 12 : 40;

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() { toy::register_toys(registry_); }

  Plan plan_of(const RandomPath& path, uint64_t seed, double stall_seconds = kPatientSeconds) {
    PipelineSpec spec = toy::spec_of(path, seed, seed % 2 == 0 ? 0 : 60, toy::budget_of(path, registry_));
    const auto set = [](Table& section, const std::string& key, auto value) {
      std::erase_if(section.entries, [&](const Entry& entry) { return entry.key == key; });
      section.entries.push_back({key, {}, {.data = value, .where = {}, .base = {}}});
    };
    set(spec.checkpoint, "every_iterations", int64_t{1});
    set(spec.runtime, "stall_seconds", stall_seconds);
    CheckResult checked = check(spec, registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    return std::move(*checked.plan);
  }

  RunSummary run(const Plan& plan, const fs::path& folder, ReplaceableParts replaced = {},
                 std::function<void(const ExecutorStart&)> on_executor_start = {}) {
    const fs::path checkpoint = newest_checkpoint(folder);
    if (checkpoint.empty()) start_over(folder);
    return engine::Run(plan, {.folder = folder,
                              .resume_from = checkpoint,
                              .files = unsynced_disk(),
                              .on_executor_start = std::move(on_executor_start),
                              .replaced = std::move(replaced)})
        .execute();
  }

  static void expect_done(const RunSummary& summary) {
    EXPECT_EQ(summary.end, RunEnd::kDone);
    if (summary.error) ADD_FAILURE() << message_of<std::exception>([&] { std::rethrow_exception(summary.error); });
  }

  // Of random graphs, until `wanted` runs have met the fault. `replaced` gets the plan and a random number.
  template <class MakeReplaced>
  void fail_random_graphs(int wanted, const ::testing::Matcher<RunEnd>& end, const ::testing::Matcher<std::string>& says,
                          MakeReplaced replaced) {
    const double stall_seconds = end.Matches(RunEnd::kStalled) ? kStallSeconds : kPatientSeconds;
    for (uint64_t seed = 0; wanted > 0; ++seed) {
      SCOPED_TRACE(seed);
      RandomPath path = toy::random_path(seed);
      path.iterations += 4;
      path.remembers = true;
      const Plan plan = plan_of(path, seed);
      const fs::path whole = folder_.path() / "whole", parts = folder_.path() / "parts";
      start_over(whole);
      start_over(parts);
      RandomStream random(seed, 3);
      const RunSummary failed = run(plan_of(path, seed, stall_seconds), parts, replaced(plan, random));
      if (failed.end == RunEnd::kDone) continue;  // the run was over before
      --wanted;
      EXPECT_THAT(failed.end, end);
      EXPECT_THAT(message_of<std::exception>([&] { std::rethrow_exception(failed.error); }), says);
      EXPECT_EQ(failed.last_checkpoint, newest_checkpoint(parts));
      expect_done(run(plan, parts));
      expect_done(run(plan, whole));
      EXPECT_EQ(outcome_of(parts), outcome_of(whole));
      if (HasFailure()) return;
    }
  }

  void fail_an_executor(int wanted, PartFault::Kind kind, const ::testing::Matcher<RunEnd>& end,
                        const ::testing::Matcher<std::string>& says) {
    fail_random_graphs(wanted, end, says, [&](const Plan& plan, RandomStream& random) {
      const auto which = static_cast<int>(random.below(plan.executors.size()));
      const PartFault fault{.kind = kind, .at = static_cast<int64_t>(random.below(30))};
      return ReplaceableParts{
          .budget = {}, .executor = [which, fault](int index, std::unique_ptr<Executor> executor) -> std::unique_ptr<Executor> {
            if (index != which) return executor;
            return std::make_unique<FaultyExecutor>(std::move(executor), fault);
          }};
    });
  }

  void fail_the_budget(int wanted, PartFault::Kind kind, const ::testing::Matcher<RunEnd>& end,
                       const ::testing::Matcher<std::string>& says) {
    fail_random_graphs(wanted, end, says, [&](const Plan&, RandomStream& random) {
      const PartFault fault{.kind = kind, .at = static_cast<int64_t>(random.below(20))};
      return ReplaceableParts{
          .budget = [fault](int64_t capacity, std::function<void()> on_release) -> std::unique_ptr<TokenBudget> {
            return std::make_unique<FaultyBudget>(capacity, std::move(on_release), fault);
          },
          .executor = {}};
    });
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

TEST_F(FaultsTest, AnExecutorThatThrows) {
  fail_an_executor(kMany, PartFault::Kind::kThrows, RunEnd::kFailed,
                   ::testing::AllOf(HasSubstr("executor 'cpu"), HasSubstr("an executor's fault")));
}

TEST_F(FaultsTest, AnExecutorThatHangs) {
  fail_an_executor(3, PartFault::Kind::kHangs, RunEnd::kStalled, HasSubstr("executor 'cpu"));
}

TEST_F(FaultsTest, AnExecutorThatLosesWork) {
  // At once when the next work of the same node comes. What was its last is missed by nobody else.
  fail_an_executor(6, PartFault::Kind::kLies, AnyOf(RunEnd::kFailed, RunEnd::kStalled),
                   AnyOf(HasSubstr("was due"), HasSubstr("waits for executor cpu")));
}

TEST_F(FaultsTest, ABudgetThatThrows) {
  fail_the_budget(kMany, PartFault::Kind::kThrows, RunEnd::kFailed,
                  ::testing::AllOf(HasSubstr("node 'rollout'"), HasSubstr("a budget's fault")));
}

TEST_F(FaultsTest, ABudgetThatGrantsNothing) {
  fail_the_budget(3, PartFault::Kind::kHangs, RunEnd::kStalled, HasSubstr("tokens of credit"));
}

TEST_F(FaultsTest, ABudgetThatGrantsWhatItDoesNotHave) {
  fail_the_budget(kMany, PartFault::Kind::kLies, RunEnd::kFailed,
                  HasSubstr("more credit was given back to the budget than was acquired"));
}

// As when the system has no thread left, or a device cannot be had.
TEST_F(FaultsTest, AnExecutorThatCannotBeHad) {
  RandomPath path = toy::random_path(3);
  const Plan plan = plan_of(path, 3);
  const fs::path folder = folder_.path() / "run";
  start_over(folder);
  for (int missing = 0; missing < static_cast<int>(plan.executors.size()); ++missing) {
    const std::string who = "executor '" + plan.executors[static_cast<size_t>(missing)].name + "' failed";
    const auto no_thread = [&](int index, std::unique_ptr<Executor> executor) {
      if (index == missing) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      return executor;
    };
    const RunSummary without_thread = run(plan, folder, {.budget = {}, .executor = no_thread});
    EXPECT_EQ(without_thread.end, RunEnd::kFailed);
    EXPECT_THAT(message_of<UserError>([&] { std::rethrow_exception(without_thread.error); }),
                ::testing::AllOf(HasSubstr(who), HasSubstr("Resource temporarily unavailable")));
    std::atomic<int> started = 0;
    const RunSummary without_device = run(plan, folder, {}, [&](const ExecutorStart&) {
      if (started++ == missing) throw std::runtime_error("no such device");
    });
    EXPECT_EQ(without_device.end, RunEnd::kFailed);
    EXPECT_THAT(message_of<UserError>([&] { std::rethrow_exception(without_device.error); }),
                ::testing::AllOf(HasSubstr("executor 'cpu"), HasSubstr("no such device")));
  }
  EXPECT_EQ(run(plan, folder).end, RunEnd::kDone);
}

}  // namespace
}  // namespace sluice::engine::faults_test
