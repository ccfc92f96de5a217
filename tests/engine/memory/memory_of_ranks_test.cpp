#include <gtest/gtest.h>

#include <optional>

#include "engine/check/check.h"
#include "engine/memory/memory_bound.h"
#include "engine/plan/plan.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"

// What is proven and predicted of a run on several ranks is of one of them: the one that has most.
namespace sluice::engine::testing::memory_of_ranks_test {
namespace {

/// 32 groups of 4 samples of at most 44 tokens in 4 slots.
class MemoryOfRanks : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }

  Plan plan_for(int ranks, const std::string& groups = "32") {
    const std::string text = edited(ppo_text(), "groups_per_iteration = 32", "groups_per_iteration = " + groups);
    return check(spec_of(edited(text, "[runtime]\n", "[cluster]\nslots = 4\n[runtime]\nmemory_gib = 24\n")), registry_, ranks)
        .plan.value();
  }

  Registry registry_;
};

TEST_F(MemoryOfRanks, ARankHasTheGroupsOfItsSlots) {
  const PlanCapacity alone = plan_for(1).main_path().capacity, shared = plan_for(2).main_path().capacity;
  EXPECT_EQ(alone.iteration_tokens, 32 * 4 * 44);
  EXPECT_EQ(shared.iteration_tokens, 16 * 4 * 44);
  EXPECT_EQ(shared.in_flight_tokens, shared.iteration_tokens);
  EXPECT_EQ(plan_for(4, "30").main_path().capacity.drawn_groups, 8);  // of 7, 8, 7 and 8
  EXPECT_LT(plan_for(2).memory.kv_bytes, plan_for(1).memory.kv_bytes);
  EXPECT_LT(plan_for(2).memory.column_bytes, plan_for(1).memory.column_bytes);
}

// A slot has 8 groups of 176 tokens, so no micro-batch is larger, whatever [budget] allows.
TEST_F(MemoryOfRanks, AMicroBatchEndsWhereASlotDoes) {
  for (const int ranks : {1, 2, 4}) EXPECT_EQ(plan_for(ranks).main_path().capacity.micro_batch_tokens, 8 * 176) << ranks;
}

TEST_F(MemoryOfRanks, TheOptimizerIsSharedInBlocks) {
  const auto of_a_model = [&](int ranks, int64_t parameters) {
    Plan plan = plan_for(ranks);
    for (PlanModel& model : plan.models) {
      if (!model.usage.updated) continue;
      model.facts.gradient_bytes = 4 * parameters, model.facts.optimizer_bytes = 8 * parameters;
      model.facts.snapshot_bytes = 12 * parameters, model.facts.version_bytes = 0;
    }
    return predict_memory(plan, plan.budget.tokens_in_flight);
  };
  constexpr int64_t kBlock = 16384, kModels = 2;
  EXPECT_EQ(of_a_model(1, 100000).optimizer_bytes, kModels * 8 * 100000);
  EXPECT_EQ(of_a_model(2, 100000).optimizer_bytes, kModels * 8 * 4 * kBlock);  // of 7 blocks
  EXPECT_EQ(of_a_model(2, 100000).copy_bytes, kModels * (4 * 100000 + 8 * 4 * kBlock));
  EXPECT_EQ(of_a_model(4, 1000).optimizer_bytes, kModels * 8 * 1000);  // all of it is of one rank
}

// Of 2^20 parameters four ranks have the fourth part of everything each, but for what passes of the gradients.
TEST_F(MemoryOfRanks, WhatIsInCommonIsThereOnce) {
  constexpr int64_t kParameters = 1 << 20, kPassing = 4 * 1000, kModels = 2;
  const auto of_models = [&](Shard shard, bool adapts, int ranks = 4, std::optional<int64_t> sharing = {}) {
    Plan plan = plan_for(ranks);
    plan.cluster.shard = shard;
    plan.cluster.shard_ranks = sharing;
    for (PlanModel& model : plan.models) {
      model.facts.weight_bytes = model.facts.common_bytes = 4 * kParameters;
      model.facts.published_bytes = 2 * kParameters;
      if (!model.usage.updated) continue;
      model.facts.gradient_bytes = 4 * kParameters, model.facts.optimizer_bytes = 8 * kParameters;
      model.facts.snapshot_bytes = 12 * kParameters, model.facts.version_bytes = 0;
      model.facts.passing_bytes = adapts ? 0 : kPassing;
    }
    return predict_memory(plan, plan.budget.tokens_in_flight);
  };
  const PlanMemory whole = of_models(Shard::kOptimizer, false), common = of_models(Shard::kParameters, false);
  EXPECT_EQ(common.weights_bytes, whole.weights_bytes / 4);
  EXPECT_EQ(common.gradient_bytes, kModels * (2 * whole.gradient_bytes / kModels / 4 + kPassing));
  EXPECT_EQ(common.optimizer_bytes, whole.optimizer_bytes);
  EXPECT_EQ(common.copy_bytes, kModels * 12 * kParameters / 4);

  // Two groups of two: sums of the other group come for what a rank owns, the fourth part.
  const PlanMemory groups = of_models(Shard::kParameters, false, 4, 2);
  EXPECT_EQ(groups.weights_bytes, whole.weights_bytes / 2);
  EXPECT_EQ(groups.gradient_bytes, kModels * (2 * whole.gradient_bytes / kModels / 2 + 8 * kParameters / 4 + kPassing));
  EXPECT_EQ(groups.optimizer_bytes, whole.optimizer_bytes);
  EXPECT_EQ(groups.copy_bytes, kModels * (4 * kParameters / 2 + 8 * kParameters / 4));

  EXPECT_EQ(of_models(Shard::kParameters, true).gradient_bytes, whole.gradient_bytes);  // adapters are of each rank
  EXPECT_EQ(of_models(Shard::kParameters, false, 1).gradient_bytes, kModels * (8 * kParameters + kPassing));
}

TEST_F(MemoryOfRanks, WhatWouldBeInCommonIsToldAsARemedy) {
  Plan plan = plan_for(4);
  for (PlanModel& model : plan.models) model.facts.weight_bytes = model.facts.common_bytes = 1 << 22;
  const int64_t less = sharded_bytes(plan, 0);
  EXPECT_GT(less, 0);
  plan.cluster.shard = Shard::kParameters;
  EXPECT_EQ(sharded_bytes(plan, 0), 0);
  EXPECT_EQ(sharded_bytes(plan_for(1), 0), 0);
}

}  // namespace
}  // namespace sluice::engine::testing::memory_of_ranks_test
