#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"

namespace sluice::engine::open_iterations_test {
namespace {

constexpr Column<float> kNumber{"number", Extent::kGroup};

// What the source and the slow node of one run share. A node is made by its type, so the test reaches them through this.
struct Counts {
  std::atomic<int64_t> ended{0};
  std::atomic<int64_t> furthest_ahead{0};
};
Counts counts;

struct NoParams {};

class Numbers final : public Source {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("numbers", "one group an iteration");
    c.writes(kNumber);
    c.needs([](const NoParams&, NodeNeeds& needs) {
      needs.groups_per_iteration = needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
  }
  explicit Numbers(const NoParams&) {}
  bool next_group(Group& group) override {
    counts.furthest_ahead = std::max(counts.furthest_ahead.load(), group.iteration - counts.ended);
    group.layout.add_sample(1, 0);
    group.layout.end_group();
    group.write(kNumber)[0] = 1;
    return true;
  }
};

class Reader final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("reader", "the fast branch, which reads");
    c.reads(kNumber);
    c.metric("toy/NODE/reader", Metric::kMean, "so that it has an effect");
  }
  explicit Reader(const NoParams&) {}
  void process(MicroBatch&) override {}
};

class Slow final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("slow", "the slow branch, which reads nothing and so holds no tokens");
    c.metric("toy/NODE/slow", Metric::kMean, "so that it has an effect");
  }
  explicit Slow(const NoParams&) {}
  void process(MicroBatch&) override { std::this_thread::sleep_for(std::chrono::microseconds(500)); }
  void end_iteration(const Iteration&) override { ++counts.ended; }
};

// The token budget does not hold a source back from a node that reads no columns: the number of open iterations does.
TEST(OpenIterations, ASlowBranchDoesNotPileUpWhatAFastOneLeavesBehind) {
  Registry registry;
  registry.add<Numbers>();
  registry.add<Reader>();
  registry.add<Slow>();
  const CheckResult checked = check(PipelineBuilder("branches", 200)
                                        .budget(64, 1)
                                        .set("runtime", "cores", int64_t{3})
                                        .node("numbers", "numbers", {}, {}, "cpu:1")
                                        .node("fast", "reader", {"numbers"})
                                        .node("behind", "slow", {"numbers"}, {}, "cpu:2")
                                        .build(),
                                    registry);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  counts.ended = counts.furthest_ahead = 0;
  engine::Run run(*checked.plan, {});
  EXPECT_EQ(run.execute().end, RunEnd::kDone);
  EXPECT_EQ(counts.ended, 200);
  EXPECT_LE(counts.furthest_ahead, 2) << "lag + 2 iterations may be open, the one at hand among them";
}

}  // namespace
}  // namespace sluice::engine::open_iterations_test
