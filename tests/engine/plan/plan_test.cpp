#include "engine/plan/plan.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace sluice::engine::plan_test {
namespace {

Plan plan_of_two() {
  Plan plan;
  plan.models.resize(2);
  plan.models[0].name = "actor";
  plan.models[1].name = "critic";
  plan.executors = {{.name = "cpu", .threads = 3}, {.name = "cpu:1", .threads = 2}};
  return plan;
}

PlanNode node_on(const std::string& executor) {
  PlanNode node;
  node.executor = executor;
  return node;
}

TEST(Plan, FindsByName) {
  const Plan plan = plan_of_two();
  EXPECT_EQ(&plan.model("critic"), &plan.models[1]);
  EXPECT_EQ(plan.executor("cpu:1").threads, 2);
}

TEST(Plan, HasNoOtherModelsAndExecutors) {
  const Plan plan = plan_of_two();
  EXPECT_EQ(plan.find_model("reference"), nullptr);
  EXPECT_EQ(plan.find_executor("cuda:0"), nullptr);
  EXPECT_THROW(plan.model("reference"), InternalError);
  EXPECT_THROW(plan.executor("cuda:0"), InternalError);
}

TEST(Plan, GivesANodeTheThreadsOfItsExecutor) {
  const Plan plan = plan_of_two();
  EXPECT_EQ(plan.threads_of(node_on("cpu")), 3);
  EXPECT_EQ(plan.threads_of(node_on("cuda:0")), 1);
}

}  // namespace
}  // namespace sluice::engine::plan_test
