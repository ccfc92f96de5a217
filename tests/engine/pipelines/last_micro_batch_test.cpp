#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"

namespace sluice::engine::last_micro_batch_test {
namespace {

constexpr Column<float> kPlace{"place", Extent::kGroup};

struct CountParams {
  int64_t groups = 1;
};

// Groups of one token, numbered within the iteration.
class Counting final : public Source {
 public:
  static void describe(Contract<CountParams>& c) {
    c.type("counting", "some groups an iteration");
    c.param("groups", &CountParams::groups).doc("of an iteration");
    c.writes(kPlace);
    c.needs([](const CountParams& params, NodeNeeds& needs) {
      needs.groups_per_iteration = params.groups;
      needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
  }
  explicit Counting(const CountParams&) {}
  bool next_group(Group& group) override {
    group.layout.add_sample(1, 0);
    group.layout.end_group();
    group.write(kPlace)[0] = static_cast<float>(group.index);
    return true;
  }
};

// Drops the groups from one place on.
struct FirstParams {
  int64_t kept = 1;
};

class First final : public Node {
 public:
  static void describe(Contract<FirstParams>& c) {
    c.type("first", "keeps the first groups of an iteration");
    c.param("kept", &FirstParams::kept).doc("groups");
    c.reads(kPlace);
    c.needs([](const FirstParams&, NodeNeeds& needs) { needs.drops_groups = true; });
  }
  explicit First(const FirstParams& params) : kept_(params.kept) {}
  void process(MicroBatch& batch) override {
    for (size_t g = 0; g < batch.groups(); ++g)
      if (batch.group_index(g) >= kept_) batch.drop_group(g);
  }

 private:
  const int64_t kept_;
};

// What the last node has seen of one run: for each micro-batch its groups, with an exclamation mark where it was the last.
std::vector<std::string> seen;

struct SeenParams {};

class Seen final : public Node {
 public:
  static void describe(Contract<SeenParams>& c) {
    c.type("seen", "notes what it is given");
    c.reads(kPlace);
    c.metric("toy/NODE/seen", Metric::kMean, "so that it has an effect");
  }
  explicit Seen(const SeenParams&) {}
  void process(MicroBatch& batch) override { seen.push_back(std::to_string(batch.groups()) + (batch.is_last() ? "!" : "")); }
};

std::vector<std::string> seen_of(int64_t groups, int64_t kept) {
  Registry registry;
  registry.add<Counting>();
  registry.add<First>();
  registry.add<Seen>();
  const CheckResult checked = check(PipelineBuilder("last", 2)
                                        .budget(/*tokens_in_flight=*/64, /*micro_batch_tokens=*/3)
                                        .node("numbers", "counting", {}, {{"groups", groups}})
                                        .node("first", "first", {"numbers"}, {{"kept", kept}})
                                        .node("seen", "seen", {"first"})
                                        .build(),
                                    registry);
  EXPECT_TRUE(checked.plan) << render(checked.problems);
  seen.clear();
  engine::Run run(*checked.plan, {});
  EXPECT_EQ(run.execute().end, RunEnd::kDone);
  return seen;
}

using Batches = std::vector<std::string>;

TEST(LastMicroBatch, IsKnownWhetherItIsFullOrNot) {
  EXPECT_EQ(seen_of(6, 6), (Batches{"3", "3!", "3", "3!"}));
  EXPECT_EQ(seen_of(7, 7), (Batches{"3", "3", "1!", "3", "3", "1!"}));
}

// Which took all of it: of the others nobody knew.
TEST(LastMicroBatch, IsNoneWhereAFilterTookItAway) { EXPECT_EQ(seen_of(7, 5), (Batches{"3", "2", "3", "2"})); }

TEST(LastMicroBatch, MayBeThinned) { EXPECT_EQ(seen_of(6, 5), (Batches{"3", "2!", "3", "2!"})); }

}  // namespace
}  // namespace sluice::engine::last_micro_batch_test
