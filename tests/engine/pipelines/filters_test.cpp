#include <gtest/gtest.h>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::filters_test {
namespace {

constexpr Column<float> kScore{"score", Extent::kSample};

struct KeepParams {
  int64_t most_draws = 1;
  double oversample = 1;
  bool drops = true;
  bool collect = false;
};

class Keep final : public Node {
 public:
  static void describe(Contract<KeepParams>& c) {
    c.type("keep", "drops groups by their scores");
    c.param("most_draws", &KeepParams::most_draws).doc("times groups_per_iteration");
    c.param("oversample", &KeepParams::oversample).doc("times what is missing");
    c.param("drops", &KeepParams::drops).doc("false: a contract with a mistake");
    c.param("collect", &KeepParams::collect).doc("a barrier, which no filter can be");
    c.reads(kScore);
    c.needs([](const KeepParams& p, NodeNeeds& needs) {
      needs.drops_groups = p.drops, needs.most_draws = p.most_draws, needs.oversample = p.oversample;
    });
    c.iteration_scope_if([](const KeepParams& p) { return p.collect; }, "collect = true");
  }
  explicit Keep(const KeepParams&) {}
  void process(MicroBatch&) override {}
};

/// generate (4 groups of 2 x 20 tokens) -> score -> keep -> grpo, with room for more in front of and after the filter.
class Filters : public ::testing::Test {
 protected:
  void SetUp() override {
    add_toy_nodes(registry_);
    registry_.add<Keep>();
  }

  static std::string text(const std::string& keep, const std::string& more = {}, int64_t tokens = 4096) {
    return R"([pipeline]
iterations = 3
[budget]
tokens_in_flight = )" +
           std::to_string(tokens) + R"(
micro_batch_tokens = 80
[runtime]
cores = 1
memory_gib = 1
[models.actor]
checkpoint = "models/tiny"
[nodes.prompts]
type = "prompts"
groups_per_iteration = 4
[nodes.generate]
type = "generate"
inputs = ["prompts"]
model = "actor"
samples_per_prompt = 2
max_prompt_tokens = 12
max_new_tokens = 8
[nodes.score]
type = "exact_match"
inputs = ["generate"]
[nodes.keep]
type = "keep"
inputs = ["score"]
)" + keep + more;
  }

  CheckResult checked(const std::string& pipeline) { return check(spec_of(pipeline), registry_); }

  void expect_refused(const std::string& golden, const std::string& pipeline) {
    const CheckResult result = checked(pipeline);
    EXPECT_FALSE(result.plan.has_value());
    expect_golden("engine/filters/" + golden + ".txt", render(result.problems));
  }

  Registry registry_;
};

const char* const kBehind = "[nodes.behind]\ntype = \"keep\"\ndrops = false\ninputs = [\"keep\"]\n";
const char* const kBeside = "[nodes.beside]\ntype = \"keep\"\ndrops = false\ninputs = [\"score\"]\n";

TEST_F(Filters, AreKnownToThePlan) {
  const auto plan = checked(text("most_draws = 3\n", std::string(kBehind) + kBeside)).plan;
  ASSERT_TRUE(plan.has_value());
  const auto stream = [&](const std::string& name) { return plan->nodes[static_cast<size_t>(plan->index_of(name))].stream; };
  EXPECT_EQ(plan->main_path().refill, plan->index_of("keep"));
  EXPECT_EQ(stream("keep"), -1);
  EXPECT_EQ(stream("beside"), -1);
  EXPECT_EQ(stream("behind"), plan->index_of("keep"));
  EXPECT_EQ(plan->main_path().capacity.drawn_groups, 12);
  EXPECT_EQ(plan->main_path().capacity.iteration_tokens, 12 * 40);
}

TEST_F(Filters, WithoutRefillDrawNoMore) {
  const auto plan = checked(text("")).plan;
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->main_path().refill.has_value());
  EXPECT_EQ(plan->main_path().capacity.drawn_groups, 4);
}

TEST_F(Filters, DoNotMeetWhatTheyHaveThinned) {
  expect_refused("mixed", text("", std::string(kBeside) +
                                       "[nodes.join]\ntype = \"keep\"\ndrops = false\ninputs = [\"keep\", \"beside\"]\n"));
}
TEST_F(Filters, HandOnTheColumnsOfWhatIsInFront) {
  expect_refused("mixed_with_ancestor",
                 text("", "[nodes.join]\ntype = \"keep\"\ndrops = false\ninputs = [\"score\", \"keep\"]\n"));
}
TEST_F(Filters, DoNotMeetOtherFilters) {
  expect_refused("two_filters", text("",
                                     "[nodes.other]\ntype = \"keep\"\ninputs = [\"score\"]\n"
                                     "[nodes.join]\ntype = \"keep\"\ndrops = false\ninputs = [\"keep\", \"other\"]\n"));
}
TEST_F(Filters, WithRefillCannotStandBehindABarrier) {
  const std::string pipeline =
      text("most_draws = 2\n", "[nodes.white]\ntype = \"keep\"\ndrops = false\ncollect = true\ninputs = [\"score\"]\n");
  expect_refused("barrier_in_front",
                 edited(pipeline, "type = \"keep\"\ninputs = [\"score\"]", "type = \"keep\"\ninputs = [\"white\"]"));
}
TEST_F(Filters, WithRefillAreOneAtMost) {
  expect_refused("two_refills",
                 text("most_draws = 2\n", "[nodes.again]\ntype = \"keep\"\nmost_draws = 2\ninputs = [\"keep\"]\n"));
}
TEST_F(Filters, AreNoBarriers) { expect_refused("barrier", text("collect = true\n")); }
TEST_F(Filters, ReplaceOnlyWhatTheyDrop) { expect_refused("drops_nothing", text("drops = false\nmost_draws = 2\n")); }
TEST_F(Filters, DrawAtLeastOnce) { expect_refused("oversample", text("most_draws = 2\noversample = 0.5\n")); }

TEST_F(Filters, MakeABarrierBesideThemHoldAllThatIsDrawn) {
  const std::string barrier = "[nodes.log]\ntype = \"keep\"\ndrops = false\ncollect = true\ninputs = [\"score\"]\n";
  EXPECT_TRUE(checked(text("most_draws = 3\n", barrier, 480)).plan.has_value());
  expect_refused("stall_beside", text("most_draws = 3\n", barrier, 479));
}

TEST_F(Filters, MakeABarrierBehindThemWaitForTheRestOfTheRound) {
  const std::string barrier = "[nodes.log]\ntype = \"keep\"\ndrops = false\ncollect = true\ninputs = [\"keep\"]\n";
  const std::string keep = "most_draws = 3\noversample = 2.0\n";
  EXPECT_TRUE(checked(text(keep, barrier, 240)).plan.has_value());
  expect_refused("stall_behind", text(keep, barrier, 239));
}

}  // namespace
}  // namespace sluice::engine::testing::filters_test
