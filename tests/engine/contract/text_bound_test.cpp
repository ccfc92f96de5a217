#include "engine/contract/text_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"
#include "tests/engine/toy_world.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::text_bound_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Column<std::string> kNote{"note", Extent::kSample};

ColumnData texts(const std::vector<std::string>& entries) {
  ColumnData data(DType::kString, entries.size());
  std::ranges::copy(entries, data.entries<std::string>().begin());
  return data;
}

// One longer than the others is no breach: they are proven to fit together.
TEST(TextBound, IsOfAllTextsOfAColumnTogether) {
  NodeType type;
  type.origin = "libmine.so";
  NodeNeeds needs;
  needs.string_bytes["note"] = 3;
  check_text_bound(type, needs, kNote.spec(), texts({"abcdef", ""}));
  check_text_bound(type, needs, kNote.spec(), texts({}));
  check_text_bound(type, needs, Column<std::string>{"other", Extent::kSample}.spec(), texts({"abcdefg"}));
  EXPECT_THAT(message_of<UserError>([&] {
                check_text_bound(type, needs, kNote.spec(), texts({"abcdef", "g"}));
              }),
              AllOf(HasSubstr("column 'note' has 7 B in 2 texts, and its contract says at most 3 bytes of each"),
                    HasSubstr("bug of the node's type")));
}

struct NoParams {};

class Writer final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("writer", "writes longer texts than it says");
    c.reads(toy::kDrawn);
    c.writes(kNote);
    c.metric("toy/NODE/written", Metric::kSum, "so that it has an effect");
    c.needs([](const NoParams&, NodeNeeds& needs) { needs.string_bytes["note"] = 8; });
  }
  explicit Writer(const NoParams&) {}
  void process(MicroBatch& batch) override {
    for (std::string& text : batch.write(kNote)) text = "no less than this";
  }
};

TEST(TextBound, ANodeThatExceedsItsOwnEndsTheRun) {
  Registry registry;
  toy::register_toys(registry);
  registry.set_origin("libmine.so");
  registry.add<Writer>();
  PipelineBuilder builder("texts", 1);
  builder.budget(64, 16).set("runtime", "cores", int64_t{1}).model("policy", {});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{8}}});
  builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"worst_sample_tokens", int64_t{4}}});
  builder.node("writer", "writer", {"rollout"});
  const CheckResult checked = check(builder.build(), registry);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  engine::Run run(*checked.plan, {});
  const RunSummary summary = run.execute();
  ASSERT_TRUE(summary.error);
  EXPECT_THAT(message_of<UserError>([&] { std::rethrow_exception(summary.error); }),
              AllOf(HasSubstr("node 'writer' failed on micro-batch 0"), HasSubstr("at most 8 bytes of each")));
}

}  // namespace
}  // namespace sluice::engine::text_bound_test
