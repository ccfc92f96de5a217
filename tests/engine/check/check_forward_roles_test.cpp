#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "engine/plan/rank_groups.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"

// Roles whose ranks compute passes of frozen models: what may be on them, and who has what.
namespace sluice::engine::testing::check_forward_roles_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The PPO pipeline of the toys, whose reference is on ranks of its own.
class ForwardRoles : public ::testing::Test {
 protected:
  ForwardRoles() {
    add_toy_nodes(registry_);
    on_["reference"] = "score";
  }

  std::map<std::string, std::string> on_ = kOnRoles;
  std::string roles_ = "[cluster.roles.score]\nranks = 3\n[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = 2\n";

  CheckResult checked() {
    CheckResult result = check(spec_of(ppo_on_roles_text(roles_, on_)), registry_);
    expect_known_kinds(result.problems);
    return result;
  }

  Plan plan() {
    CheckResult result = checked();
    EXPECT_TRUE(result.plan) << (result.problems.empty() ? "" : result.problems.front().message);
    return std::move(result.plan.value());
  }

  std::vector<std::string> problems() {
    std::vector<std::string> lines;
    for (const Problem& problem : checked().problems) lines.push_back(problem.kind + ": " + problem.message);
    return lines;
  }

  // What does not sample is where the reference is not.
  void everything_else_on(const std::string& role) {
    for (auto& [node, on] : on_)
      if (node != "reference") on = role;
  }

  Registry registry_;
};

std::optional<ModelUsage> usage_on(const Plan& plan, int rank, const std::string& model) {
  return plan.usage_on(rank, plan.model(model));
}

TEST_F(ForwardRoles, HaveTheLastRanks) {
  const Plan plan = this->plan();
  ASSERT_EQ(plan.roles.size(), 2u);
  ASSERT_EQ(plan.forward_roles.size(), 1u);
  EXPECT_EQ(plan.ranks, 7);
  EXPECT_EQ(plan.forward_roles.front().first_rank, 4);
  EXPECT_EQ(plan.role_of(0)->name, "train");
  EXPECT_EQ(plan.role_of(2)->name, "rollout");
  EXPECT_EQ(plan.role_of(6)->name, "score");
  EXPECT_EQ(plan.scheduling_ranks(), 4);
  for (int rank = 4; rank < 7; ++rank) {
    EXPECT_TRUE(plan.assists(rank) && plan.forwards(rank));
    EXPECT_FALSE(plan.trains(rank) || plan.samples(rank) || plan.holds_trained(rank) || plan.assists_sampling(rank));
    EXPECT_EQ(group_of(plan, rank), std::vector<int>{rank});
  }
}

TEST_F(ForwardRoles, HaveTheModelAndThoseThatAskHaveNoneOfItsWeights) {
  const Plan plan = this->plan();
  const int reference = plan.index_of("reference");
  EXPECT_TRUE(plan.has(0, reference) && !plan.computes(0, reference));
  EXPECT_TRUE(!plan.has(4, reference) && plan.computes(4, reference));
  for (const bool published : {false, true}) {
    EXPECT_FALSE(usage_on(plan, 0, "reference")->has_live_weights(published));
    EXPECT_TRUE(usage_on(plan, 4, "reference")->has_live_weights(published));
  }
  EXPECT_EQ(usage_on(plan, 0, "reference")->forwarding, Forwarding::kAsks);
  EXPECT_EQ(usage_on(plan, 5, "reference")->forwarding, Forwarding::kAnswers);
  EXPECT_FALSE(usage_on(plan, 2, "reference"));  // which samples
  EXPECT_FALSE(usage_on(plan, 4, "actor"));
  EXPECT_EQ(usage_on(plan, 0, "actor")->forwarding, Forwarding::kNone);
}

// Each rank of the fewer has a block of the others, and nobody is left out or asked by two.
TEST_F(ForwardRoles, AreDealtOutInBlocks) {
  for (int training = 1; training <= 5; ++training) {
    for (int forward = 1; forward <= 7; ++forward) {
      roles_ = "[cluster.roles.score]\nranks = " + std::to_string(forward) +
               "\n[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = " + std::to_string(training) + "\n";
      const Plan plan = this->plan();
      const PlanRole& role = plan.forward_roles.front();
      std::map<std::pair<int, int>, int> pairs;
      for (int rank = 0; rank < training; ++rank) {
        const std::vector<int> peers = forward_peers(plan, rank, role);
        EXPECT_GE(peers.size(), static_cast<size_t>(std::max(1, forward / training)));
        EXPECT_LE(peers.size(), static_cast<size_t>((forward + training - 1) / training));
        for (const int peer : peers) ++pairs[{rank, peer}];
      }
      for (int rank = role.first_rank; rank < plan.ranks; ++rank) {
        const std::vector<int> peers = forward_peers(plan, rank, role);
        EXPECT_FALSE(peers.empty());
        for (const int peer : peers) ++pairs[{peer, rank}];
      }
      for (const auto& [pair, times] : pairs) EXPECT_EQ(times, 2) << pair.first << " and " << pair.second;  // of both sides
    }
  }
}

TEST_F(ForwardRoles, MayStandBesideOneThatDoesEverythingElse) {
  roles_ = "[cluster.roles.score]\nranks = 1\n[cluster.roles.work]\nranks = 2\ntokens_in_flight = 9000\n";
  everything_else_on("work");
  const Plan plan = this->plan();
  EXPECT_TRUE(!plan.has_roles());
  ASSERT_TRUE(plan.whole);
  EXPECT_EQ(plan.role_of(1)->name, "work");
  EXPECT_EQ(plan.role_of(2)->name, "score");
  EXPECT_EQ(plan.training_ranks(), 2);
  EXPECT_EQ(plan.scheduling_ranks(), 2);
  EXPECT_EQ(plan.training_tokens(), 9000);
  EXPECT_TRUE(plan.trains(1) && plan.samples(1));
  EXPECT_EQ(plan.slots(), 2);
  EXPECT_TRUE(plan.has_executor(0, "score/cpu") && plan.has_executor(0, "work/cpu"));
}

TEST_F(ForwardRoles, TakeMemoryFromThoseThatAsk) {
  const Plan apart = plan();
  on_["reference"] = "train";
  roles_ = "[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = 2\n";
  const Plan together = plan();
  const int64_t weights = together.model("reference").facts.weight_bytes;
  EXPECT_EQ(apart.memory.weights_bytes, together.memory.weights_bytes - weights);
  const PlanMemory& forward = apart.forward_roles.front().memory;
  EXPECT_EQ(forward.weights_bytes, weights);
  EXPECT_EQ(forward.gradient_bytes + forward.optimizer_bytes + forward.copy_bytes + forward.kv_bytes + forward.column_bytes, 0);
}

TEST_F(ForwardRoles, OnlyWhatReadsFrozenModelsIsThere) {
  on_["values"] = "score";  // of the critic, which is trained
  EXPECT_THAT(problems(), ElementsAre("role-misplaced: 'values' is on role \"score\", and 'train' on \"train\""));
  on_["values"] = "train";
  on_["rewards"] = "score";  // without a model
  EXPECT_THAT(problems(), ElementsAre("role-misplaced: 'rewards' is on role \"score\", and 'train' on \"train\""));
  EXPECT_THAT(checked().problems.front().caret, HasSubstr("only what reads frozen models"));
  EXPECT_EQ(checked().problems.front().help, "on = \"train\"");
}

TEST_F(ForwardRoles, AreNotThoseThatSample) {
  on_["reference"] = "rollout";
  roles_ = "[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = 2\n";
  EXPECT_THAT(problems(), ElementsAre("role-misplaced: 'reference' is on role \"rollout\", and 'train' on \"train\""));
}

TEST_F(ForwardRoles, HoldNoSamplesAndAreNotElastic) {
  roles_ = "[cluster.roles.score]\nranks = 1\ntokens_in_flight = 512\nelastic = true\n" +
           roles_.substr(roles_.find("[cluster.roles.rollout]"));
  EXPECT_THAT(problems(),
              ElementsAre("setting-without-effect: role \"score\" computes passes of frozen models, and holds no samples",
                          "setting-unusable: role \"score\" computes passes of frozen models, and cannot be elastic so far"));
}

// Its ranks would otherwise be taken for those that train.
TEST_F(ForwardRoles, ARoleWithoutNodesIsToldBesideOneThatDoesEverythingElse) {
  roles_ = "[cluster.roles.score]\nranks = 1\n[cluster.roles.work]\nranks = 1\n[cluster.roles.idle]\nranks = 1\n";
  everything_else_on("work");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("role-unused: no node is on role \"idle\"")));
}

TEST_F(ForwardRoles, AMisspeltOneIsTheOneThatWasMeant) {
  roles_ = "[cluster.roles.score]\nranks = 1\n[cluster.roles.work]\nranks = 1\n";
  everything_else_on("work");
  on_["reference"] = "scor";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("role-unknown: 'reference' is on role \"scor\"")));
  EXPECT_EQ(checked().problems.front().help, "on = \"score\"");
  on_["reference"] = "";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("node-without-role: 'reference'")));
  EXPECT_THAT(checked().problems.front().help, HasSubstr("on = \"score\""));
}

TEST_F(ForwardRoles, ANodeOnNoRoleIsToldAllThatFit) {
  on_["reference"] = "";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("node-without-role: 'reference'")));
  EXPECT_THAT(checked().problems.front().help, HasSubstr("on = \"train\""));
  EXPECT_THAT(checked().problems.front().help, ::testing::Not(HasSubstr("rollout")));
}

// The first two that a user writes: what is still on no role is on the third, also where a misspelt node is among it.
TEST_F(ForwardRoles, AllElseIsMeantForTheRoleThatNoNodeIsOn) {
  everything_else_on("");
  on_["generate"] = "rollout";
  on_["train"] = "trian";
  const std::vector<Problem> told = checked().problems;
  EXPECT_EQ(told.size(), on_.size() - 2);
  for (const Problem& problem : told) EXPECT_EQ(problem.help, "on = \"train\"") << problem.message;
  on_["reference"] = "rollout";
  roles_ = roles_.substr(roles_.find("[cluster.roles.rollout]"));
  EXPECT_THAT(problems(), ::testing::Contains(HasSubstr("role-misplaced: 'reference' is on role \"rollout\"")));
}

TEST_F(ForwardRoles, AllElseIsMeantForTheRoleThatDoesEverything) {
  roles_ = "[cluster.roles.score]\nranks = 1\n[cluster.roles.work]\nranks = 1\n";
  everything_else_on("");
  const std::vector<Problem> told = checked().problems;
  EXPECT_EQ(told.size(), on_.size() - 1);
  for (const Problem& problem : told) EXPECT_EQ(problem.help, "on = \"work\"") << problem.message;
}

}  // namespace
}  // namespace sluice::engine::testing::check_forward_roles_test
