#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"

namespace sluice::engine::testing::check_roles_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The PPO pipeline of the toys on two roles, the one that trains second in the file, with what a test says otherwise.
class CheckRoles : public ::testing::Test {
 protected:
  CheckRoles() { add_toy_nodes(registry_); }

  std::map<std::string, std::string> on_ = kOnRoles;
  std::string roles_ = "[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = 1\n";
  std::string memory_;  // memory_gib

  CheckResult checked(int ranks = 0) {
    CheckResult result =
        check(spec_of(edited(ppo_on_roles_text(roles_, on_), "[runtime]\n", "[runtime]\n" + memory_)), registry_, ranks);
    expect_known_kinds(result.problems);
    return result;
  }

  // "kind: message" of each problem.
  std::vector<std::string> problems(int ranks = 0) {
    std::vector<std::string> lines;
    for (const Problem& problem : checked(ranks).problems) lines.push_back(problem.kind + ": " + problem.message);
    return lines;
  }

  std::vector<std::string> helps() {
    std::vector<std::string> lines;
    for (const Problem& problem : checked().problems) lines.push_back(problem.help);
    return lines;
  }

  Registry registry_;
};

TEST_F(CheckRoles, ThoseThatTrainHaveTheFirstRanksWhateverTheOrderInTheFile) {
  const Plan plan = checked().plan.value();
  ASSERT_EQ(plan.roles.size(), 2u);
  EXPECT_EQ(plan.roles[0].name, "train");
  EXPECT_EQ(plan.roles[0].first_rank, 0);
  EXPECT_EQ(plan.roles[1].name, "rollout");
  EXPECT_EQ(plan.roles[1].first_rank, 1);
  EXPECT_EQ(plan.ranks, 3);
}

TEST_F(CheckRoles, ARoleHasTheTokensOfTheBudgetUnlessItSaysItsOwn) {
  roles_ = "[cluster.roles.rollout]\nranks = 1\ntokens_in_flight = 512\n[cluster.roles.train]\nranks = 1\n";
  const Plan plan = checked().plan.value();
  EXPECT_EQ(plan.training_tokens(), 16384);
  EXPECT_EQ(plan.making_tokens(), 512);
  EXPECT_EQ(plan.token_capacity(), 16384);  // of rank 0
}

TEST_F(CheckRoles, AnExecutorStandsBehindTheRole) {
  on_["sync"] = "train/cpu:0";
  EXPECT_EQ(checked().plan.value().nodes.back().executor, "train/cpu");
}

TEST_F(CheckRoles, ARunHasAsManyRanksAsTheRoles) {
  EXPECT_THAT(problems(3), IsEmpty());
  EXPECT_THAT(problems(2), ElementsAre(HasSubstr("roles-without-ranks: the roles of [cluster] have 3 ranks together")));
}

TEST_F(CheckRoles, RanksThatAreNotWrittenAreOneProblem) {
  roles_ = "[cluster.roles.rollout]\n[cluster.roles.train]\nranks = 1\n";
  EXPECT_THAT(problems(3), ElementsAre(HasSubstr("missing-key: ")));
}

TEST_F(CheckRoles, WithoutRolesANodeOnOneIsToldHowToAddIt) {
  roles_.clear();
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("role-unknown: 'generate' is on role \"rollout\""),
                                      HasSubstr("role-unknown: 'score' is on role \"train\"")));
  EXPECT_THAT(helps().front(), HasSubstr("add [cluster.roles.rollout] with ranks"));
}

TEST_F(CheckRoles, WithoutRolesAMisspeltExecutorIsOne) {
  roles_.clear();
  on_ = {{"score", "cpuu"}, {"values", "gpu:0"}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("executor-unknown: "), HasSubstr("executor-unknown: ")));
}

TEST_F(CheckRoles, AMisspeltRoleIsReportedOnceAndNotAsUnusedToo) {
  on_ = {{"generate", "rollout"}};
  for (const char* node : {"score", "reference", "values", "rewards", "advantages", "train", "sync"}) on_[node] = "trian";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("role-unknown: 'score' is on role \"trian\"")));
  EXPECT_THAT(checked().problems.front().caret, HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(checked().problems.front().notes.front(), HasSubstr("so are 'reference', 'values', "));
}

TEST_F(CheckRoles, ANodeOnNoRoleIsToldTheOneOfItsKind) {
  on_["score"] = "";
  on_["values"] = "cpu:1";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("node-without-role: 'score'"), HasSubstr("node-without-role: 'values'")));
  EXPECT_THAT(helps(), ElementsAre("on = \"train\"", "on = \"train/cpu:1\""));
}

TEST_F(CheckRoles, WhereOnlyTheRolloutHasARoleAllElseIsOnTheOther) {
  on_ = {{"generate", "rollout"}};
  EXPECT_EQ(helps(), std::vector<std::string>(7, "on = \"train\""));
}

TEST_F(CheckRoles, TheRoleThatTrainsAModelIsThatOfAllThatDoesNotSample) {
  on_["score"] = "rollout";  // stands in front of what trains
  EXPECT_THAT(problems(), ElementsAre("role-misplaced: 'score' is on role \"rollout\", and 'train' on \"train\""));
}

TEST_F(CheckRoles, OneRoleForAllIsNone) {
  for (auto& [node, on] : on_) on = "train";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("role-misplaced: role \"train\" has what samples and all else")));
  EXPECT_THAT(helps().front(), HasSubstr("on = \"rollout\" in [nodes.generate]"));
}

TEST_F(CheckRoles, ARoleWithoutNodesIsReportedBesideOtherProblems) {
  roles_ += "[cluster.roles.scoring]\nranks = 1\n";
  on_["values"] = "cpu:1/train";
  on_["score"] = "judging";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("is on role \"judging\""), HasSubstr("'values' is on no role")));
  on_["values"] = "train";
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("is on role \"judging\""), HasSubstr("role-unused: no node is on role \"scoring\"")));
}

TEST_F(CheckRoles, AnExecutorBehindTheRoleIsCheckedAsAnyOther) {
  on_["score"] = "train/gpu:0";
  on_["values"] = "train/";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("executor-unknown: what on has after the role must be an executor"),
                                      HasSubstr("executor-unknown: what on has after the role must be an executor")));
}

TEST_F(CheckRoles, NoRoleIsCalledLikeAnExecutor) {
  roles_ = "[cluster.roles.rollout]\nranks = 2\n[cluster.roles.cpu]\nranks = 1\n";
  for (auto& [node, on] : on_) on = on == "rollout" ? on : "cpu";
  EXPECT_THAT(problems(), ElementsAre("bad-name: \"cpu\" cannot be the name of a role"));
}

TEST_F(CheckRoles, ASourceWithARolloutHasNone) {
  on_["prompts"] = "rollout";
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("executor-of-source: source 'prompts' runs where")));
}

TEST_F(CheckRoles, SlotsAreThoseOfTheRoleThatTrains) {
  roles_ = "[cluster]\nslots = 4\n[cluster.roles.rollout]\nranks = 3\n[cluster.roles.train]\nranks = 2\n";
  EXPECT_THAT(problems(), IsEmpty());
  roles_ = "[cluster]\nslots = 4\n[cluster.roles.rollout]\nranks = 2\n[cluster.roles.train]\nranks = 3\n";
  EXPECT_THAT(problems(),
              ElementsAre("slots-not-divided: 4 slots cannot be divided among 3 ranks of role \"train\", which trains"));
}

// The most tokens that are named are those of that role, and they fit.
TEST_F(CheckRoles, EachRoleIsJudgedByItsOwnMemory) {
  const auto roles = [](int64_t making) {
    return "[cluster.roles.rollout]\nranks = 1\ntokens_in_flight = " + std::to_string(making) +
           "\n[cluster.roles.train]\nranks = 1\ntokens_in_flight = 2048\n";
  };
  memory_ = "memory_gib = 0.00022\n";
  roles_ = roles(4096);
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("memory-too-small: a rank of role \"rollout\" needs up to ")));
  EXPECT_THAT(helps(), ElementsAre("tokens_in_flight <= 2666 in [cluster.roles.rollout] fits"));
  roles_ = roles(2666);
  EXPECT_TRUE(checked().plan.has_value());
  roles_ = roles(2667);
  EXPECT_FALSE(checked().plan.has_value());
}

// A rank that samples must be able to hold one group.
TEST_F(CheckRoles, EachRoleIsJudgedByItsOwnTokens) {
  roles_ = "[cluster.roles.rollout]\nranks = 1\ntokens_in_flight = 20\n[cluster.roles.train]\nranks = 1\ntokens_in_flight = 20\n";
  const std::vector<std::string> found = problems();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], HasSubstr("budget-stalls: 20 tokens in flight of a rank of role \"rollout\" cannot hold a group"));
  EXPECT_THAT(found[1], HasSubstr("budget-stalls: 20 tokens in flight cannot fill one micro-batch"));
}

}  // namespace
}  // namespace sluice::engine::testing::check_roles_test
