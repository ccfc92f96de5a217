#include "engine/run/rank_costs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/run/cost_recorder.h"
#include "tests/engine/simulation_world.h"

// What a run with roles has cost: rank 0, which writes it down, has no samples made.
namespace sluice::engine::rank_costs_test {
namespace {

testing::ToyPlan one_that_trains_and_two_that_sample() {
  PipelineBuilder builder = testing::toy_pipeline(4, 2, 64, "rollout", /*trained=*/true);
  const std::string policy = "policy";
  builder.node("train", "toy_train", {"rollout"}, {{"model", policy}, {"reads", std::string("drawn")}}, "train");
  builder.node("publish", "toy_publish", {"train"}, {{"model", policy}}, "train");
  builder.role("train", {{"ranks", int64_t{1}}}).role("rollout", {{"ranks", int64_t{2}}});
  return testing::toy_plan(builder, /*ranks=*/0);
}

/// Steps of `us` microseconds a sampled token, and as many a token of the prompt.
void sample(CostRecorder& recorder, int node, int64_t us) {
  int64_t now = 0;
  for (int64_t step = 0; step < 8; ++step) {
    const int64_t sampled = 1 + step, read = step % 3, begin = now;
    now += us * 1000 * (sampled + read);
    recorder.ended({.node = node, .iteration = 1, .tokens = sampled, .prompt_tokens = read, .begin_ns = begin, .end_ns = now});
  }
}

void pack(CostRecorder& recorder, int64_t prompt) {
  Layout layout;
  layout.add_sample(prompt + 2, 2);
  layout.end_group();
  recorder.packed(0, layout);
}

TEST(RankCosts, OfNodesThatOthersHaveAreTheirMean) {
  const testing::ToyPlan made = one_that_trains_and_two_that_sample();
  const int rollout = made.plan.index_of("rollout"), train = made.plan.index_of("train");
  CostRecorder first(made.plan, 0), second(made.plan, 1), third(made.plan, 2);
  sample(second, rollout, 10);
  sample(third, rollout, 20);
  first.ended({.node = train, .iteration = 1, .micro_batch = 0, .tokens = 4, .begin_ns = 0, .end_ns = 40'000});
  pack(first, 28);  // of which they have read 7 tokens each
  for (int rank = 1; rank < 3; ++rank) first.hear(rank, rank_costs_from(bytes_of((rank == 1 ? second : third).told())));
  const Costs costs = first.costs();
  EXPECT_NEAR(costs.nodes.at("rollout").per_sampled_token_us, 15, 1e-6);
  EXPECT_NEAR(costs.nodes.at("rollout").per_prompt_token_us, 15 * 0.5, 1e-6);
  EXPECT_NEAR(costs.nodes.at("train").per_token_us, 10, 1e-6);
  EXPECT_EQ(second.told().nodes.size(), 1u);
  EXPECT_TRUE(first.told().nodes.empty());
}

TEST(RankCosts, OfARankThatHasMadeNothingDoNotCount) {
  const testing::ToyPlan made = one_that_trains_and_two_that_sample();
  CostRecorder first(made.plan, 0), second(made.plan, 1);
  const CostRecorder third(made.plan, 2);
  sample(second, made.plan.index_of("rollout"), 10);
  first.hear(1, second.told());
  first.hear(2, third.told());
  EXPECT_NEAR(first.costs().nodes.at("rollout").per_sampled_token_us, 10, 1e-6);
}

TEST(RankCosts, AreTheSameBehindTheMail) {
  const RankCosts costs{.read_prompt_tokens = 7,
                        .sample_prompt_tokens = 28,
                        .nodes = {{"rollout", {.threads = 3, .per_step_us = 1.5, .kept_share = 0.25}}, {"other", {}}}};
  EXPECT_EQ(rank_costs_from(bytes_of(costs)), costs);
  EXPECT_THROW(rank_costs_from("words"), InternalError);
}

}  // namespace
}  // namespace sluice::engine::rank_costs_test
