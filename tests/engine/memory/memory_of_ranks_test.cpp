#include <gtest/gtest.h>

#include "engine/memory/memory_bound.h"
#include "engine/plan/plan.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"

// What is proven and predicted of a run on several ranks is of one of them: the one that has most.
namespace sluice::engine::testing {
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

}  // namespace
}  // namespace sluice::engine::testing
