#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::check_test {
namespace {

/// Checks pipelines that are wrong in one way each; the whole text of the problems is compared with a golden file.
class Check : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }

  CheckResult checked(const std::string& text) { return check(spec_of(text), registry_); }

  void expect_refused(const std::string& golden, const std::string& text) {
    const CheckResult result = checked(text);
    EXPECT_FALSE(result.plan.has_value());
    EXPECT_TRUE(has_errors(result.problems));
    expect_known_kinds(result.problems);
    expect_golden("engine/check/" + golden + ".txt", render(result.problems));
  }

  void expect_warned(const std::string& golden, const std::string& text) {
    const CheckResult result = checked(text);
    EXPECT_TRUE(result.plan.has_value());
    expect_known_kinds(result.problems);
    expect_golden("engine/check/" + golden + ".txt", render(result.problems));
  }

  static std::string ppo(const std::string& from, const std::string& to) { return edited(ppo_text(), from, to); }

  Registry registry_;
};

TEST_F(Check, AcceptsTheWholePpoPipelineWithoutAWord) {
  const CheckResult result = checked(ppo_text());
  EXPECT_EQ(render(result.problems), "");
  EXPECT_TRUE(result.plan.has_value());
}

struct Nothing {};

// Whose code cannot tell what it needs.
class Needy final : public Node {
 public:
  static void describe(Contract<Nothing>& c) {
    c.type("needy", "needs what is not there");
    c.needs([](const Nothing&, NodeNeeds&) { throw UserError("there is no server"); });
  }
  explicit Needy(const Nothing&) {}
  void process(MicroBatch&) override {}
};

TEST_F(Check, WhatTheCodeOfATypeThrowsHasThePlaceOfItsNode) {
  registry_.add<Needy>();
  const CheckResult result = checked(ppo_text() + "\n[nodes.needy]\ntype = \"needy\"\ninputs = [\"generate\"]\n");
  const auto found = std::ranges::find(result.problems, "there is no server", &Problem::message);
  ASSERT_NE(found, result.problems.end());
  EXPECT_EQ(found->kind, "setting-unusable");
  EXPECT_THAT(render(*found), ::testing::HasSubstr("[nodes.needy]"));
}

TEST_F(Check, ReportsUnrelatedProblemsInOnePass) {
  std::string text = ppo("max_new_tokens = 12", "max_new_token = 12");
  text = edited(text, "inputs = [\"rewards\", \"values\"]", "inputs = [\"rewards\"]");
  text = edited(text, "lambda = 0.95", "lambda = 1.5");
  text = edited(text, "iterations = 120", "iterations = 0");
  expect_refused("many_at_once", text);
}

TEST_F(Check, NamesTheTablesThatAreMissing) {
  std::string text = ppo_text();
  expect_refused("no_settings", text.substr(text.find("[models.actor]")));
}

TEST_F(Check, SuggestsTheNodeTypeThatWasMeant) { expect_refused("type_misspelt", ppo("type = \"gae\"", "type = \"gea\"")); }
TEST_F(Check, ListsNodeTypesWhenNoneIsNear) { expect_refused("type_unknown", ppo("type = \"gae\"", "type = \"mystery\"")); }
TEST_F(Check, SuggestsTheInputThatWasMeant) {
  expect_refused("input_misspelt", ppo("[\"rewards\", \"values\"]", "[\"reward\", \"values\"]"));
}
TEST_F(Check, RefusesAModelAsInput) {
  expect_refused("input_is_model", ppo("[\"rewards\", \"values\"]", "[\"rewards\", \"critic\"]"));
}
TEST_F(Check, RefusesANodeThatReadsItself) {
  expect_refused("input_itself", ppo("[\"rewards\", \"values\"]", "[\"advantages\", \"values\"]"));
}
TEST_F(Check, RefusesAnInputNamedTwice) {
  expect_refused("input_twice", ppo("[\"rewards\", \"values\"]", "[\"rewards\", \"rewards\", \"values\"]"));
}
TEST_F(Check, NamesALoopOnce) {
  expect_refused("loop", ppo("inputs = [\"score\", \"reference\"]", "inputs = [\"score\", \"reference\", \"train\"]"));
}

TEST_F(Check, NamesEveryLoopOnceAlsoWhereOneFeedsTheOther) {
  std::string text =
      ppo("type = \"exact_match\"\ninputs = [\"generate\"]", "type = \"exact_match\"\ninputs = [\"generate\", \"reference\"]");
  text = edited(text, "type = \"logprobs\"\ninputs = [\"generate\"]", "type = \"logprobs\"\ninputs = [\"generate\", \"score\"]");
  expect_refused("two_loops", edited(text, "inputs = [\"advantages\"]", "inputs = [\"advantages\", \"sync\"]"));
}

TEST_F(Check, RefusesANodeWithoutInputs) { expect_refused("no_inputs", ppo("inputs = [\"rewards\", \"values\"]\n", "")); }
TEST_F(Check, RefusesASourceWithInputs) {
  expect_refused("source_inputs", ppo("type = \"prompts\"\n", "type = \"prompts\"\ninputs = [\"train\"]\n"));
}

TEST_F(Check, RefusesAPipelineWithoutSource) {
  expect_refused("no_source", edited(ppo("[nodes.prompts]\ntype = \"prompts\"\ngroups_per_iteration = 32\n", ""),
                                     "inputs = [\"prompts\"]\n", ""));
}

TEST_F(Check, RefusesTwoSourcesWithoutSharesOfTheBudget) {
  expect_refused("two_sources",
                 ppo_text() + "\n[nodes.more]\ntype = \"prompts\"\n" +
                     "\n[nodes.again]\ntype = \"generate\"\ninputs = [\"more\"]\nmodel = \"actor\"\nmax_new_tokens = 4\n");
}

TEST_F(Check, RefusesASecondRolloutOfOneSource) {
  expect_refused(
      "two_rollouts",
      ppo_text() + "\n[nodes.again]\ntype = \"generate\"\ninputs = [\"prompts\"]\nmodel = \"actor\"\nmax_new_tokens = 4\n");
}

TEST_F(Check, RefusesARolloutBehindAnotherNode) {
  expect_refused("rollout_inputs", ppo("inputs = [\"prompts\"]", "inputs = [\"prompts\", \"extra\"]") +
                                       "\n[nodes.extra]\ntype = \"group_score\"\ninputs = [\"prompts\"]\n");
}

TEST_F(Check, RefusesAWayPastTheRollout) {
  expect_refused("past_rollout", ppo("type = \"exact_match\"\ninputs = [\"generate\"]",
                                     "type = \"exact_match\"\ninputs = [\"generate\", \"prompts\"]"));
}

TEST_F(Check, RefusesPromptsThatNobodyAnswers) {
  expect_refused("no_rollout", R"([pipeline]
iterations = 1
[budget]
tokens_in_flight = 64
micro_batch_tokens = 64
[nodes.prompts]
type = "prompts"
)");
}

TEST_F(Check, RefusesASourceOfSamplesBeforeARollout) {
  expect_refused("samples_before_rollout", ppo("type = \"prompts\"", "type = \"samples\""));
}

TEST_F(Check, NamesTheTypeThatWritesAMissingColumn) {
  std::string text = ppo("[nodes.values]\ntype = \"values\"\ninputs = [\"generate\"]\nmodel = \"critic\"\n\n", "");
  expect_refused("missing_column", edited(text, "[\"rewards\", \"values\"]", "[\"rewards\"]"));
}

TEST_F(Check, OffersATypeThatDoesWithoutTheMissingColumn) {
  std::string text = ppo("[nodes.values]\ntype = \"values\"\ninputs = [\"generate\"]\nmodel = \"critic\"\n\n", "");
  text = edited(text, "[\"rewards\", \"values\"]", "[\"rewards\"]");
  expect_refused("missing_column_replace", edited(text, "critic = \"critic\"\n", ""));
}

TEST_F(Check, NamesTheNodeThatWritesAColumnElsewhere) {
  expect_refused("column_elsewhere", ppo("[\"rewards\", \"values\"]", "[\"rewards\"]"));
}

TEST_F(Check, SaysSoWhenAColumnComesTooLate) {
  expect_refused("column_too_late",
                 edited(ppo("inputs = [\"rewards\", \"values\"]", "inputs = [\"rewards\"]"),
                        "type = \"values\"\ninputs = [\"generate\"]", "type = \"values\"\ninputs = [\"advantages\"]"));
}

// The misspelt node might have written anything: what is missing after it is only a consequence.
TEST_F(Check, IsSilentAboutColumnsBehindAnUnknownType) {
  const CheckResult result = checked(ppo("type = \"token_rewards\"", "type = \"token_reward\""));
  EXPECT_EQ(result.problems.size(), 1u);
}

TEST_F(Check, RefusesAColumnWithTwoWriters) {
  expect_refused("two_writers", ppo("inputs = [\"score\", \"reference\"]", "inputs = [\"score\", \"reference\", \"old\"]") +
                                    "\n[nodes.old]\ntype = \"logprobs\"\ninputs = [\"generate\"]\nmodel = \"actor\"\n");
}

TEST_F(Check, RefusesAColumnOfAnotherShape) {
  expect_refused("column_shape", ppo_text() + "\n[nodes.log]\ntype = \"group_score\"\ninputs = [\"score\"]\n");
}

TEST_F(Check, WarnsOfWorkThatNobodyReads) {
  expect_warned(
      "unread",
      ppo_text() +
          "\n[nodes.old]\ntype = \"logprobs\"\ninputs = [\"generate\"]\nmodel = \"reference\"\nwrites = \"old_logprobs\"\n");
}

TEST_F(Check, RefusesSettingsThatMustAgree) {
  expect_refused("disagree", ppo("model = \"reference\"\n", "model = \"reference\"\ntemperature = 0.7\n"));
}

TEST_F(Check, SuggestsTheModelThatWasMeant) {
  expect_refused("model_misspelt", ppo("model = \"reference\"", "model = \"referense\""));
}
TEST_F(Check, RefusesAModelThatIsNotThere) { expect_refused("model_unknown", ppo("model = \"reference\"", "model = \"judge\"")); }
TEST_F(Check, RefusesAWrongHead) { expect_refused("model_head", ppo("model = \"critic\"", "model = \"reference\"")); }
TEST_F(Check, RefusesTrainingWithoutOptimizer) {
  expect_refused("model_frozen", ppo("optimizer = { learning_rate = 3e-4 }\n", ""));
}
TEST_F(Check, WarnsOfAModelThatNobodyUses) {
  expect_warned("model_unused", ppo_text() + "\n[models.spare]\ncheckpoint = \"models/tiny\"\n");
}

TEST_F(Check, WarnsOfAnOptimizerWithoutTraining) {
  expect_warned("optimizer_unused",
                ppo("[models.reference]\ncheckpoint = \"models/tiny\"\n",
                    "[models.reference]\ncheckpoint = \"models/tiny\"\noptimizer = { learning_rate = 1e-5 }\n"));
}

TEST_F(Check, RefusesTwoTrainersOfOneModel) {
  expect_refused("two_trainers",
                 ppo_text() + "\n[nodes.train_again]\ntype = \"train_ppo\"\ninputs = [\"advantages\"]\nactor = \"actor\"\n");
}

TEST_F(Check, RefusesWeightsThatAreNeverPublished) {
  expect_refused("unpublished", ppo("\n[nodes.sync]\ntype = \"sync_weights\"\ninputs = [\"train\"]\nmodel = \"actor\"\n", ""));
}

TEST_F(Check, RefusesToPublishWhatNobodyTrains) {
  expect_refused("publish_frozen", ppo("inputs = [\"train\"]\nmodel = \"actor\"", "inputs = [\"train\"]\nmodel = \"reference\""));
}
TEST_F(Check, RefusesToPublishBeforeTraining) {
  expect_refused("publish_early", ppo("inputs = [\"train\"]", "inputs = [\"advantages\"]"));
}

TEST_F(Check, RefusesALagWithoutTraining) {
  std::string text = ppo_text();
  text = edited(text.substr(0, text.find("[nodes.train]")), "policy_lag = 0", "policy_lag = 2");
  expect_refused("lag_without_training", text);
}

TEST_F(Check, WarnsOfALagThatCannotOverlap) { expect_warned("lag_one_executor", ppo("policy_lag = 0", "policy_lag = 1")); }

TEST_F(Check, RefusesAPlaceThatIsNone) {
  expect_refused("executor_unknown", ppo("lambda = 0.95", "lambda = 0.95\non = \"gpu0\""));
}
TEST_F(Check, RefusesCuda) { expect_refused("executor_cuda", ppo("lambda = 0.95", "lambda = 0.95\non = \"cuda:0\"")); }
TEST_F(Check, RefusesAPlaceForASourceBeforeARollout) {
  expect_refused("executor_source", ppo("groups_per_iteration = 32", "groups_per_iteration = 32\non = \"cpu:1\""));
}
TEST_F(Check, RefusesMoreExecutorsThanCores) {
  expect_refused("executors_too_many", ppo("lambda = 0.95", "lambda = 0.95\non = \"cpu:1\""));
}

TEST_F(Check, DividesTheCoresAmongExecutors) {
  const auto plan = checked(edited(ppo("lambda = 0.95", "lambda = 0.95\non = \"cpu:1\""), "cores = 1", "cores = 5")).plan;
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->executors.size(), 2u);
  EXPECT_EQ(plan->executors[0].threads, 3);
  EXPECT_EQ(plan->executors[1].name, "cpu:1");
  EXPECT_EQ(plan->executors[1].threads, 2);
}

TEST_F(Check, OrdersNodesByTheFileWhereTheGraphLeavesAChoice) {
  const auto plan = checked(ppo_text()).plan;
  std::vector<std::string> names;
  for (const PlanNode& node : plan->nodes) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"prompts", "generate", "score", "reference", "values", "rewards", "advantages",
                                             "train", "sync"}));
}

TEST_F(Check, FreesAColumnAtTheLastReaderOfAllPaths) {
  const auto plan = checked(ppo_text()).plan;
  const auto freed_by = [&](const std::string& node) {
    std::vector<std::string> names;
    for (const int column : plan->nodes[static_cast<size_t>(plan->index_of(node))].frees)
      names.push_back(plan->columns[static_cast<size_t>(column)].spec.name);
    return names;
  };
  EXPECT_EQ(freed_by("rewards"), (std::vector<std::string>{"score", "reference_logprobs"}));
  EXPECT_EQ(freed_by("score"), (std::vector<std::string>{"label", "response"}));
  EXPECT_EQ(freed_by("values"), std::vector<std::string>{});  // tokens live until train
}

TEST_F(Check, KeepsLagPlusOnePublishedVersions) {
  const auto kept = [&](const std::string& lag) {
    return checked(edited(edited(ppo("policy_lag = 0", "policy_lag = " + lag), "cores = 1", "cores = 2"), "critic = \"critic\"\n",
                          "critic = \"critic\"\non = \"cpu:1\"\n"))
        .plan->models[0]
        .usage.versions.readable;
  };
  EXPECT_EQ(kept("0"), 1);
  EXPECT_EQ(kept("1"), 2);
  EXPECT_EQ(kept("3"), 4);
}

TEST_F(Check, CountsWeightsGradientsAndOptimizerOfTrainedModelsOnly) {
  const PlanMemory memory = checked(ppo_text()).plan->memory;
  EXPECT_EQ(memory.weights_bytes, (3 + 1) * 4000);  // and what generation reads of the actor
  EXPECT_EQ(memory.gradient_bytes, 2 * 4000);
  EXPECT_EQ(memory.optimizer_bytes, 2 * 8000);
  EXPECT_EQ(memory.kv_bytes, 16 * 5632);  // 32 x 4 x 44 tokens at once at lag 0
}

// What is sampled is a published version: live weights beside it would be read by nobody.
TEST_F(Check, CountsNoLiveWeightsOfAModelThatIsOnlySampledFrom) {
  const std::string sampled = R"([pipeline]
iterations = 1
[budget]
tokens_in_flight = 16384
micro_batch_tokens = 2048
[models.policy]
checkpoint = "models/tiny"
[nodes.prompts]
type = "prompts"
[nodes.generate]
type = "generate"
inputs = ["prompts"]
model = "policy"
max_new_tokens = 12
[nodes.score]
type = "exact_match"
inputs = ["generate"]
)";
  const auto alone = checked(sampled);
  ASSERT_TRUE(alone.plan) << render(alone.problems);
  EXPECT_FALSE(alone.plan->models[0].usage.has_live_weights(/*reads_published=*/false));
  EXPECT_EQ(alone.plan->memory.weights_bytes, 4000);
  const auto read = checked(sampled + R"([nodes.reference]
type = "logprobs"
inputs = ["generate"]
model = "policy"
)");
  ASSERT_TRUE(read.plan) << render(read.problems);
  EXPECT_TRUE(read.plan->models[0].usage.has_live_weights(/*reads_published=*/false));
  EXPECT_FALSE(read.plan->models[0].usage.has_live_weights(/*reads_published=*/true));
  EXPECT_EQ(read.plan->memory.weights_bytes, 2 * 4000);
}

// A thousand columns, alive on a thousand edges: anything cubic would not come back.
TEST_F(Check, TakesAThousandNodes) {
  std::string text = R"([pipeline]
iterations = 1
[budget]
tokens_in_flight = 4096
micro_batch_tokens = 2048
[runtime]
cores = 1
[models.m]
checkpoint = "models/tiny"
[nodes.n0]
type = "samples"
)";
  for (int i = 1; i < 1000; ++i) {
    text += "[nodes.n" + std::to_string(i) + "]\ntype = \"logprobs\"\nmodel = \"m\"\ninputs = [\"n" + std::to_string(i - 1) +
            "\"]\nwrites = \"c" + std::to_string(i) + "\"\n";
  }
  const CheckResult result = checked(text);
  ASSERT_TRUE(result.plan.has_value());
  EXPECT_EQ(result.plan->nodes.size(), 1000u);
}

}  // namespace
}  // namespace sluice::engine::testing::check_test
