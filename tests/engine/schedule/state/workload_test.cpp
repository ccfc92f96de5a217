#include "engine/schedule/state/workload.h"

#include <gtest/gtest.h>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/contract/world/world.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::workload_test {
namespace {

struct NoParams {};

// Holds on to what it was given, as it may.
class Keeper final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("keeper", "keeps a reference to its resources");
    c.reads(toy::kDrawn);
    c.metric("toy/NODE/kept", Metric::kSum, "so that it has an effect");
  }
  Keeper(const NoParams&, NodeResources& resources) : resources_(resources) {}
  void process(MicroBatch&) override {}

  const NodeResources& resources() const { return resources_; }

 private:
  const NodeResources& resources_;
};

const NodeResources& kept_by(const Workload::Part& part) { return dynamic_cast<const Keeper&>(*part.node).resources(); }

TEST(Workload, KeepsTheResourcesOfEachNodeAsLongAsTheNode) {
  Registry registry;
  toy::register_toys(registry);
  registry.add<Keeper>();
  PipelineBuilder builder("keepers", 1);
  builder.budget(64, 16).set("runtime", "cores", int64_t{1}).model("policy", {});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{8}}});
  builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"worst_sample_tokens", int64_t{4}}});
  builder.node("first", "keeper", {"rollout"}).node("second", "keeper", {"rollout"});
  const CheckResult checked = check(builder.build(), registry);
  ASSERT_TRUE(checked.plan) << render(checked.problems);

  OneProcess alone;
  const Workload workload = make_workload(*checked.plan, {}, {.numbers = alone});
  const size_t last = workload.parts.size() - 1;
  ASSERT_NE(&kept_by(workload.parts[last - 1]), &kept_by(workload.parts[last]));
  EXPECT_EQ(kept_by(workload.parts[last - 1]).node, "first");
  EXPECT_EQ(kept_by(workload.parts[last]).node, "second");
  EXPECT_EQ(kept_by(workload.parts[last]).metrics, workload.parts[last].metrics.get());
}

}  // namespace
}  // namespace sluice::engine::workload_test
