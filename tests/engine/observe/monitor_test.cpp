#include "engine/observe/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::monitor_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What the node that hangs waits for. A node is made by its type, so the test reaches it through this.
struct Latch {
  std::promise<void> promise;
  std::shared_future<void> released = promise.get_future().share();
};

std::shared_ptr<Latch>& latch() {
  static std::shared_ptr<Latch> current;
  return current;
}

struct HangParams {
  int64_t in_iteration = 1;
};

class Hangs final : public Node {
 public:
  static void describe(Contract<HangParams>& c) {
    c.type("hangs", "until it is released");
    c.param("in_iteration", &HangParams::in_iteration).doc("when");
    c.reads(toy::kDrawn);
    c.metric("toy/NODE/hangs", Metric::kMean, "so that it has an effect");
  }
  explicit Hangs(const HangParams& params) : params_(params) {}
  void process(MicroBatch& batch) override {
    if (batch.iteration() == params_.in_iteration) latch()->released.wait();
  }

 private:
  HangParams params_;
};

Plan plan_with_a_hanging_node(const Registry& registry) {
  PipelineBuilder builder("world", 4);
  constexpr double kStallSeconds = 3;  // for less the first iteration may wait where much else runs
  builder.budget(64, 16).set("runtime", "cores", int64_t{2}).set("runtime", "stall_seconds", kStallSeconds).model("policy", {});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{8}}});
  builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"worst_sample_tokens", int64_t{4}}},
               "cpu:1");
  builder.node("stuck", "hangs", {"rollout"});
  builder.node("train", "toy_train", {"stuck"}, {{"model", std::string("policy")}, {"reads", std::string("drawn")}});
  builder.node("publish", "toy_publish", {"train"}, {{"model", std::string("policy")}});
  CheckResult checked = check(builder.build(), registry);
  EXPECT_TRUE(checked.plan) << render(checked.problems);
  return *checked.plan;
}

// The run ends although the node does not: the report names it, what waits for what, and what lies on the edges.
TEST(Watchdog, EndsARunInWhichANodeHangs) {
  latch() = std::make_shared<Latch>();
  Registry registry;
  toy::register_toys(registry);
  registry.add<Hangs>();
  const Plan plan = plan_with_a_hanging_node(registry);
  engine::Run run(plan, {});
  const RunSummary summary = run.execute();
  EXPECT_EQ(summary.end, RunEnd::kStalled);
  EXPECT_EQ(summary.iterations, 1);
  try {
    std::rethrow_exception(summary.error);
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("node 'stuck' hangs"), HasSubstr("iteration 1"), HasSubstr("edge rollout -> stuck"),
                                    HasSubstr("stall_seconds")));
  }
  latch()->promise.set_value();  // so that the run's destructor, which waits for the node, ends
}

// Between any two looks at it an hour goes by.
class LeapingClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_ += 3'600'000'000'000; }

 private:
  mutable std::atomic<int64_t> now_ns_{0};
};

// A process that was stopped for an hour is no run in which nothing has got on for an hour.
TEST(Watchdog, BlamesNobodyForTimeInWhichItDidNotRunItself) {
  const LeapingClock clock;
  std::atomic<int> looks{0};
  std::promise<int> stalled;
  const Monitor monitor(
      {.clock = clock, .folder = {}, .stall_seconds = 2.5}, [] { return RunStatus(); }, [&looks] { return ++looks, 7; },
      [&](const Problem&) { stalled.set_value(looks); });
  EXPECT_GE(stalled.get_future().get(), 4) << "a look at the progress, and three that find the same and count a second each";
}

TEST(Watchdog, TellsWhoWaitsWhenNobodyWorks) {
  RunStatus status;
  status.sampling_iteration = 3;
  status.tokens_in_flight = status.budget = 64;
  status.executors.push_back({.name = "cpu"});
  status.nodes.push_back({.name = "rollout", .executor = "cpu", .waits_for = "8 tokens of credit: 64 of 64 are in flight"});
  status.edges.push_back({.from = "rollout", .to = "whiten", .micro_batches = 2, .tokens = 64, .bytes = 512});
  const std::string text = render(stall_problem(status, 5));
  EXPECT_THAT(text, AllOf(HasSubstr("the run stalled: nothing has got on for 5.0 seconds"),
                          HasSubstr("64 of 64 tokens in flight"), HasSubstr("'rollout' waits for 8 tokens of credit"),
                          HasSubstr("edge rollout -> whiten: 2 micro-batches, 64 tokens, 512 bytes")));
}

TEST(Watchdog, NamesTheRanksAndWhatIsLikelyBetweenThem) {
  RunStatus status;
  status.ranks.push_back({.rank = 0, .host = "n1", .pid = 318, .last = {.doing = "idle, iteration 7"}, .silent_seconds = 0});
  status.ranks.push_back({.rank = 1, .host = "n2", .pid = 4711, .last = {.doing = "idle, iteration 7"}, .silent_seconds = 0.5});
  EXPECT_THAT(render(stall_problem(status, 5)),
              AllOf(HasSubstr("rank 1 (host n2, pid 4711) gave its last sign 0.5 s ago: idle, iteration 7\n"),
                    HasSubstr("where no rank works, something between them was lost or damaged")));
  status.executors.push_back({.name = "cpu", .working_on = "train", .for_seconds = 5});
  EXPECT_THAT(render(stall_problem(status, 5)), Not(HasSubstr("lost or damaged")));
}

TEST(RunStatus, ReadsBackWhatItWrote) {
  RunStatus status;
  status.pipeline = "ppo";
  status.state = "running";
  status.seconds = 1.5;
  status.executors.push_back({.name = "cpu", .threads = 2, .working_on = "train", .for_seconds = 0.25, .queued = 3});
  status.nodes.push_back({.name = "train", .executor = "cpu", .micro_batches = 7, .waits_for = "input"});
  status.edges.push_back({.from = "a", .to = "b", .micro_batches = 1, .tokens = 2, .bytes = 3});
  status.ranks.push_back({.rank = 1,
                          .host = "n2",
                          .pid = 4711,
                          .last = {.doing = "idle", .iterations_done = 7, .tokens_in_flight = 8, .resident_bytes = 9},
                          .silent_seconds = 0.5});
  EXPECT_EQ(status_json(parse_status(status_json(status), "status.json")), status_json(status));
  EXPECT_THROW(parse_status("{}", "status.json"), UserError);
  EXPECT_THROW(parse_status("[1", "status.json"), UserError);
}

}  // namespace
}  // namespace sluice::engine::monitor_test
