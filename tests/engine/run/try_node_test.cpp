#include "engine/run/try_node.h"

#include <gmock/gmock.h>

#include <stdexcept>

#include "base/error.h"

namespace sluice::engine::try_node_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Column<float> kIn{"in", Extent::kSample};
constexpr Column<float> kOut{"out", Extent::kSample};

struct DoublerParams {
  bool barrier = false;
};

// out = 2 * in + 100 * the id of the micro-batch.
class Doubler final : public Node {
 public:
  static void describe(Contract<DoublerParams>& c) {
    c.type("doubler", "for tests");
    c.param("barrier", &DoublerParams::barrier).doc("for tests");
    c.reads(kIn);
    c.writes(kOut);
    c.iteration_scope_if([](const DoublerParams& p) { return p.barrier; }, "barrier = true");
    c.metric("first_groups", Metric::kSum, "for tests");
    c.metric("batches_at_once", Metric::kValue, "for tests");
  }

  Doubler(const DoublerParams&, NodeResources& resources) : metrics_(*resources.metrics) {}

  void process(MicroBatch& batch) override {
    const auto in = batch.read(kIn);
    const auto out = batch.write(kOut);
    for (size_t i = 0; i < in.size(); ++i) out[i] = 2 * in[i] + 100 * static_cast<float>(batch.id());
    metrics_.sum("first_groups", static_cast<double>(batch.group_index(0)));
  }

  void process_iteration(int64_t, std::span<MicroBatch> batches) override {
    for (MicroBatch& batch : batches) process(batch);
    metrics_.value("batches_at_once", static_cast<double>(batches.size()));
  }

 private:
  MetricsRecorder& metrics_;
};

struct FaultyParams {
  std::string fault;
};

// Does something else than its contract says, or what no code of a node should.
class Faulty final : public Node {
 public:
  static void describe(Contract<FaultyParams>& c) {
    c.type("faulty", "for tests");
    c.reads(kIn);
    c.writes(kOut);
    c.metric("toy/NODE/works", Metric::kSum, "for tests");
    c.total("works");
  }

  Faulty(const FaultyParams& params, NodeResources& resources)
      : fault_(params.fault), name_(resources.node), metrics_(*resources.metrics), totals_(*resources.totals) {}

  void begin_iteration(const Iteration&) override {
    if (fault_ == "begin throws") throw std::runtime_error("no licence");
  }

  void process(MicroBatch& batch) override {
    if (fault_ == "throws") throw std::runtime_error("no licence");
    if (fault_ == "throws a number") throw 1;
    if (fault_ != "no column") batch.write(kOut);
    if (fault_ == "drop") batch.drop_group(0);
    metrics_.sum(fault_ == "metric" ? "toy/other" : "toy/" + name_ + "/works", 1);
    totals_.add(fault_ == "total" ? "other" : "works", 1);
  }

  void end_iteration(const Iteration&) override {
    if (fault_ == "end throws") throw std::runtime_error("no licence");
  }

 private:
  const std::string fault_, name_;
  MetricsRecorder& metrics_;
  Totals& totals_;
};

struct EmptySource final : Source {
  static void describe(Contract<DoublerParams>& c) { c.type("empty_source", "for tests"); }
  explicit EmptySource(const DoublerParams&) {}
  bool next_group(Group&) override { return false; }
};

class TryNodeTest : public ::testing::Test {
 protected:
  TryNodeTest() {
    registry_.add<Doubler>();
    registry_.add<Faulty>();
    registry_.add<EmptySource>();
  }

  static Group group(float value) {
    Group group;
    group.layout.add_sample(1, 0);
    group.layout.end_group();
    group.write(kIn)[0] = value;
    return group;
  }

  NodeTrial trial(bool barrier = false) const {
    return {.type = registry_.find("doubler"),
            .params = std::make_shared<DoublerParams>(DoublerParams{barrier}),
            .resources = {},
            .groups = {group(1), group(2), group(3)},
            .groups_per_batch = {}};
  }

  std::string refusal(const std::string& fault) const {
    NodeTrial t = trial();
    t.type = registry_.find("faulty");
    t.params = std::make_shared<FaultyParams>(FaultyParams{fault});
    try {
      try_node(std::move(t));
    } catch (const UserError& error) {
      return error.message();
    }
    return "accepted";
  }

  static std::vector<float> out(const NodeOutcome& outcome) {
    const auto entries = outcome.columns.at(0).data.entries<float>();
    return {entries.begin(), entries.end()};
  }

  Registry registry_;
};

TEST_F(TryNodeTest, AllGroupsAreOneMicroBatchByDefault) {
  const NodeOutcome outcome = try_node(trial());
  EXPECT_EQ(outcome.columns.at(0).spec, kOut.spec());
  EXPECT_THAT(out(outcome), ElementsAre(2, 4, 6));
}

TEST_F(TryNodeTest, GroupsCanBeSpreadOverMicroBatches) {
  NodeTrial t = trial();
  t.groups_per_batch = {1, 2};
  const NodeOutcome outcome = try_node(std::move(t));
  EXPECT_THAT(out(outcome), ElementsAre(2, 104, 106));
  EXPECT_THAT(outcome.metrics, ElementsAre(std::pair<std::string, double>("first_groups", 1)));
}

TEST_F(TryNodeTest, BarrierGetsAllMicroBatchesAtOnce) {
  NodeTrial t = trial(true);
  t.groups_per_batch = {1, 1, 1};
  EXPECT_EQ(try_node(std::move(t)).metrics.back(), (std::pair<std::string, double>("batches_at_once", 3)));
}

TEST_F(TryNodeTest, MissingColumnIsNamed) {
  NodeTrial t = trial();
  t.groups[1].columns.clear();
  try {
    try_node(std::move(t));
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("reads column 'in' (float32, one entry a sample), which is not given"));
  }
}

TEST_F(TryNodeTest, ColumnOfAnotherTypeIsRefused) {
  NodeTrial t = trial();
  for (Group& group : t.groups) {
    group.columns.clear();
    group.write(Column<int64_t>{"in", Extent::kSample});
  }
  EXPECT_THROW(try_node(std::move(t)), UserError);
}

TEST_F(TryNodeTest, WhatItsCodeThrowsIsToldWithItsName) {
  EXPECT_EQ(refusal(""), "accepted");
  for (const char* fault : {"begin throws", "throws", "end throws"})
    EXPECT_EQ(refusal(fault), "node 'faulty' failed: no licence") << fault;
  EXPECT_EQ(refusal("throws a number"), "node 'faulty' failed: it threw something that is no std::exception");
}

TEST_F(TryNodeTest, ANodeIsHeldToItsContract) {
  EXPECT_EQ(refusal("no column"), "it did not write column 'out', which its contract promises");
  EXPECT_EQ(refusal("drop"), "it drops groups, but its contract does not say that it is a filter");
  EXPECT_EQ(refusal("metric"), "it records metric 'toy/other', which its contract does not declare");
  EXPECT_EQ(refusal("total"), "it adds to total 'other', which its contract does not declare");
}

TEST_F(TryNodeTest, SourceIsRefused) {
  NodeTrial t = trial();
  t.type = registry_.find("empty_source");
  EXPECT_THROW(try_node(std::move(t)), UserError);
}

TEST_F(TryNodeTest, NoGroupsGiveEmptyColumns) {
  NodeTrial t = trial();
  t.groups.clear();
  EXPECT_EQ(try_node(std::move(t)).columns.at(0).data.count(), 0u);
}

}  // namespace
}  // namespace sluice::engine::try_node_test
