#include <gtest/gtest.h>

#include <limits>

#include "engine/check/check.h"
#include "engine/plan/capacity.h"
#include "engine/plan/plan.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::capacity_test {
namespace {

struct NoParams {};

// Its contract forgets how long a sample can become.
class Boundless final : public Source {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("boundless", "samples of any length");
    c.needs([](const NoParams&, NodeNeeds& needs) { needs.groups_per_iteration = 1, needs.samples_per_group = 1; });
  }
  explicit Boundless(const NoParams&) {}
  bool next_group(Group&) override { return false; }
};

struct SideParams {
  int64_t side_samples = 0;
};

// Four samples of at most 44 tokens to each prompt, and some that do not travel.
class WithSideSamples final : public Rollout {
 public:
  static void describe(Contract<SideParams>& c) {
    c.type("with_side_samples", "samples of at most 44 tokens");
    c.param("side_samples", &SideParams::side_samples).doc("samples beside those of a group");
    c.needs([](const SideParams& params, NodeNeeds& needs) {
      needs.samples_per_group = 4;
      needs.worst_sample_tokens = 44;
      needs.side_samples = params.side_samples;
    });
  }
  explicit WithSideSamples(const SideParams&) {}
  int64_t worst_tokens(const Group&) const override { return 0; }
  void start(Group) override {}
  void step(Sink&) override {}
  bool idle() const override { return true; }
};

/// 32 groups of 4 samples of at most 44 tokens: 176 tokens a group, 5632 an iteration.
class Capacity : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }

  CheckResult checked(int64_t in_flight, int64_t micro_batch, const std::string& whiten, const std::string& epochs = "1") {
    std::string text = edited(ppo_text(), "tokens_in_flight = 16384", "tokens_in_flight = " + std::to_string(in_flight));
    text = edited(text, "micro_batch_tokens = 2048", "micro_batch_tokens = " + std::to_string(micro_batch));
    text = edited(text, "lambda = 0.95", "lambda = 0.95\nwhiten = \"" + whiten + "\"");
    return check(spec_of(edited(text, "actor = \"actor\"\n", "actor = \"actor\"\nepochs = " + epochs + "\n")), registry_);
  }

  void expect_refused(const std::string& golden, const CheckResult& result) {
    EXPECT_FALSE(result.plan.has_value());
    expect_known_kinds(result.problems);
    expect_golden("engine/capacity/" + golden + ".txt", render(result.problems));
  }

  Registry registry_;
};

TEST_F(Capacity, ABarrierNeedsTheWholeIteration) {
  EXPECT_FALSE(checked(5631, 2048, "iteration").plan.has_value());
  const auto plan = checked(5632, 2048, "iteration").plan;
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->main_path().capacity.tokens_needed, 5632);
  EXPECT_EQ(plan->main_path().capacity.needed_by, "advantages");
}

TEST_F(Capacity, ExplainsTheStallAtABarrier) { expect_refused("barrier", checked(4096, 2048, "iteration")); }
TEST_F(Capacity, ExplainsTheStallAtTwoBarriers) { expect_refused("two_barriers", checked(4096, 2048, "iteration", "4")); }
TEST_F(Capacity, OffersNoFewerGroupsThanOne) { expect_refused("barrier_no_group", checked(170, 176, "iteration")); }

TEST_F(Capacity, WithoutBarrierOneMicroBatchIsEnough) {
  EXPECT_FALSE(checked(2047, 2048, "none").plan.has_value());
  const auto plan = checked(2048, 2048, "none").plan;
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->main_path().capacity.tokens_needed, 2048);
}

TEST_F(Capacity, AMicroBatchLargerThanTheIterationIsCutByTheIteration) {
  const auto plan = checked(5632, 100000, "none").plan;
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->main_path().capacity.tokens_needed, 5632);
}

TEST_F(Capacity, ExplainsTheStallAtThePacker) { expect_refused("packer", checked(1024, 2048, "none")); }
TEST_F(Capacity, AMicroBatchMustHoldAGroup) { expect_refused("group", checked(16384, 100, "none")); }
TEST_F(Capacity, AMicroBatchMustHoldASample) { expect_refused("sample", checked(16384, 40, "none")); }

TEST_F(Capacity, APassMustHoldASampleAndNeedNotHoldAGroup) {
  const auto with = [&](const std::string& pass) {
    return check(spec_of(edited(ppo_text(), "micro_batch_tokens = 2048", "micro_batch_tokens = 2048\npass_tokens = " + pass)),
                 registry_);
  };
  EXPECT_TRUE(with("44").plan.has_value());
  expect_refused("pass", with("43"));
}

TEST_F(Capacity, SamplesMustFitEveryModel) {
  const std::string text = edited(ppo_text(), "head = \"value\"\n", "head = \"value\"\nmax_positions = 40\n");
  expect_refused("positions", check(spec_of(text), registry_));
}

TEST_F(Capacity, SamplesMustFitWhatTheModelCanSample) {
  const std::string text = edited(ppo_text(), "[models.actor]\n", "[models.actor]\nmax_sampled_positions = 40\n");
  expect_refused("sampled_positions", check(spec_of(text), registry_));
}

// Only the node that samples is bound by it.
TEST_F(Capacity, AModelThatIsOnlyReadMayReadMoreThanItCanSample) {
  const std::string text = edited(ppo_text(), "[models.reference]\n", "[models.reference]\nmax_sampled_positions = 40\n");
  EXPECT_TRUE(check(spec_of(text), registry_).plan.has_value());
}

TEST_F(Capacity, ASampleMustHaveABound) {
  registry_.add<Boundless>();
  const std::string text = ppo_text();
  expect_refused(
      "boundless",
      check(spec_of(text.substr(0, text.find("[models.actor]")) + "[nodes.source]\ntype = \"boundless\"\n"), registry_));
}

TEST_F(Capacity, SamplesBesideAGroupTakeRoomInItsWorstCase) {
  registry_.add<WithSideSamples>();
  const auto checked = [&](int side, int micro_batch) {
    return check(
        spec_of("[pipeline]\nname = \"side\"\niterations = 1\n\n[budget]\ntokens_in_flight = 5000\nmicro_batch_tokens = " +
                std::to_string(micro_batch) +
                "\n\n[nodes.prompts]\ntype = \"prompts\"\ngroups_per_iteration = 8\n\n"
                "[nodes.sample]\ntype = \"with_side_samples\"\ninputs = [\"prompts\"]\nside_samples = " +
                std::to_string(side) + "\n"),
        registry_);
  };
  ASSERT_TRUE(checked(0, 176).plan.has_value());
  EXPECT_EQ(checked(0, 176).plan->main_path().capacity.group_tokens, 4 * 44);
  ASSERT_TRUE(checked(1, 220).plan.has_value());
  EXPECT_EQ(checked(1, 220).plan->main_path().capacity.group_tokens, 5 * 44);
  EXPECT_EQ(checked(1, 220).plan->main_path().capacity.iteration_tokens, 8 * 5 * 44);
  expect_refused("side_samples", checked(1, 219));
}

TEST_F(Capacity, HugeNumbersAreRefusedAndDoNotWrapAround) {
  const std::string text = edited(ppo_text(), "groups_per_iteration = 32", "groups_per_iteration = 9000000000000000000");
  EXPECT_FALSE(check(spec_of(edited(text, "lambda = 0.95", "whiten = \"iteration\"")), registry_).plan.has_value());
}

// All groups have 176 tokens here, so that a micro-batch of 2048 is cut after 11 of them.
TEST(CapacityProof, KnowsThatGroupsOfOneSizeDoNotFillAMicroBatch) {
  const CapacityShape shape{.worst_group = 176, .least_group = 176, .groups = 32, .micro_batch = 2048};
  EXPECT_EQ(prove(shape).tokens_needed, 11 * 176);
  EXPECT_EQ(prove(shape).micro_batch_tokens, 11 * 176);
}

TEST(CapacityProof, DoesNotWrapAround) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t worst : {int64_t{1}, kMost / 2, kMost}) {
    const CapacityShape shape{.worst_group = worst,
                              .least_group = 1,
                              .groups = kMost,
                              .micro_batch = kMost,
                              .open_iterations = 2,
                              .nodes = {{.reads = true}, {.inputs = {0}, .reads = true, .barrier = true}},
                              .refill = 0,
                              .most_draws = 4,
                              .oversample = 1.5};
    EXPECT_GE(prove(shape).tokens_needed, worst);
    EXPECT_EQ(prove(shape).drawn_groups, kMost);
  }
}

TEST(CapacityProof, RoundsOversamplingUpButNotForABinaryFraction) {
  EXPECT_EQ(groups_of_round(10, 1.1, 100), 11);
  EXPECT_EQ(groups_of_round(3, 1.1, 100), 4);
  EXPECT_EQ(groups_of_round(3, 1, 100), 3);
  EXPECT_EQ(groups_of_round(3, 2, 5), 5);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_GE(groups_of_round(kMost / 2, 1.5, kMost), kMost / 2);
}

// The toys' rollout takes its worst case at once.
TEST_F(Capacity, RefusesCreditOnDemandWhereNothingTakesItLater) {
  const std::string text =
      edited(ppo_text(), "micro_batch_tokens = 2048", "micro_batch_tokens = 2048\nadmission = \"on_demand\"");
  const CheckResult result = check(spec_of(text), registry_);
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].kind, "setting-without-effect");
  EXPECT_NE(result.problems[0].message.find("type \"generate\" takes its worst case at once"), std::string::npos);
}

TEST_F(Capacity, AMicroBatchThatIsLeftToThePlanIsHalfOfWhatIsInFlightWhereMemoryAllowsIt) {
  const std::string text = edited(ppo_text(), "micro_batch_tokens = 2048", "micro_batch_tokens = \"auto\"");
  const CheckResult result = check(spec_of(edited(text, "tokens_in_flight = 16384", "tokens_in_flight = 8192")), registry_);
  ASSERT_TRUE(result.plan) << render(result.problems);
  EXPECT_EQ(result.plan->budget.micro_batch_tokens.value, 4096);
  EXPECT_EQ(check(spec_of(edited(text, "tokens_in_flight = 16384", "tokens_in_flight = 300")), registry_)
                .plan->budget.micro_batch_tokens.value,
            176);  // one group
}

TEST_F(Capacity, NoMicroBatchCanBeChosenWhereTheBudgetDoesNotHoldAGroup) {
  const std::string text = edited(ppo_text(), "micro_batch_tokens = 2048", "micro_batch_tokens = \"auto\"");
  const CheckResult result = check(spec_of(edited(text, "tokens_in_flight = 16384", "tokens_in_flight = 175")), registry_);
  ASSERT_FALSE(result.plan);
  EXPECT_NE(render(result.problems).find("tokens_in_flight >= 176"), std::string::npos) << render(result.problems);
}

}  // namespace
}  // namespace sluice::engine::testing::capacity_test
