#include "engine/text/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/json/json.h"
#include "engine/check/check.h"
#include "engine/plan/cluster_work.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::plan_text_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanText : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }

  // With a given size of memory, so that the texts are those of any machine.
  Plan plan_of(const std::string& text) {
    const bool given = text.find("memory_gib") != std::string::npos;
    return check(spec_of(given ? text : edited(text, "[runtime]\n", "[runtime]\nmemory_gib = 24\n")), registry_).plan.value();
  }

  static std::string whitened() { return edited(ppo_text(), "lambda = 0.95", "lambda = 0.95\nwhiten = \"iteration\""); }
  static std::string lagging() {
    const std::string text = edited(edited(ppo_text(), "policy_lag = 0", "policy_lag = 2"), "cores = 1", "cores = 4");
    return edited(text, "type = \"train_ppo\"", "type = \"train_ppo\"\non = \"cpu:1\"");
  }

  static std::string on_roles() {
    return ppo_on_roles_text(
        "[cluster]\nslots = 4\n"
        "[cluster.roles.rollout]\nranks = 3\ntokens_in_flight = 1024\n"
        "[cluster.roles.train]\nranks = 2\n",
        kOnRoles);
  }

  Registry registry_;
};

TEST_F(PlanText, ShowsNodesMemoryOverlapAndWhyItCannotStall) {
  expect_golden("engine/plan/ppo.txt", plan_text(plan_of(ppo_text())));
}
TEST_F(PlanText, NamesTheBarrierThatTrainingWaitsFor) {
  expect_golden("engine/plan/barrier.txt", plan_text(plan_of(whitened())));
}
TEST_F(PlanText, CountsTheCopiesThatALagNeeds) { expect_golden("engine/plan/lag.txt", plan_text(plan_of(lagging()))); }
// Four slots on two ranks: each has two buffers of gradients, and sends each number once to its owner and its own to the other.
TEST_F(PlanText, SaysWhatARankHasToDo) {
  const std::string text = edited(ppo_text(), "[runtime]\n", "[cluster]\nslots = 4\n[runtime]\nmemory_gib = 24\n");
  const Plan alone = check(spec_of(text), registry_).plan.value(), shared = check(spec_of(text), registry_, 2).plan.value();
  const ClusterWork work = cluster_work(shared);
  EXPECT_EQ(work.slots, 2);
  EXPECT_EQ(alone.memory.gradient_bytes, 2 * shared.memory.gradient_bytes);
  EXPECT_EQ(work.gradient_bytes, shared.memory.gradient_bytes / work.slots);  // 2 (N - 1) / N of them, one step
  EXPECT_EQ(cluster_work(alone).gradient_bytes, 0);
  EXPECT_THAT(plan_text(shared), HasSubstr("\n  ranks        2 ranks with 2 slots each; a slot has up to "));
  EXPECT_THAT(plan_text(shared), HasSubstr(" of gradients an iteration; what follows is of each\n"));
  EXPECT_THAT(plan_text(alone), HasSubstr("\n  ranks        1 rank with 4 slots each; "));
  EXPECT_THAT(plan_text(plan_of(ppo_text())), Not(HasSubstr("  ranks ")));
  EXPECT_FALSE(check(spec_of(text), registry_, 3).plan.has_value());
}
// With a role that samples, and after one that does all else.
TEST_F(PlanText, SaysWhoseRanksComputePassesOfFrozenModels) {
  std::map<std::string, std::string> on = kOnRoles;
  on["reference"] = "score/cpu:1";
  const std::string roles =
      "[cluster.roles.score]\nranks = 3\n[cluster.roles.rollout]\nranks = 1\n[cluster.roles.train]\nranks = 2\n";
  expect_golden("engine/plan/forward_roles.txt", plan_text(plan_of(ppo_on_roles_text(roles, on))));
  for (auto& [node, role] : on)
    if (node != "reference") role = "work";
  const std::string whole = "[cluster]\nslots = 2\n[cluster.roles.score]\nranks = 1\n[cluster.roles.work]\nranks = 2\n";
  expect_golden("engine/plan/forward_role.txt", plan_text(plan_of(ppo_on_roles_text(whole, on))));
}
// Four slots on two ranks that train, which three ranks sample for.
TEST_F(PlanText, SaysWhatEachRoleHasToDoAndWhatGoesBetweenThem) {
  expect_golden("engine/plan/roles.txt", plan_text(plan_of(on_roles())));
}
TEST_F(PlanText, IsJsonOfRolesForPrograms) {
  const Json json = Json::parse(plan_json(plan_of(on_roles())));
  expect_golden("engine/plan/roles.json", json["cluster"].dump(2) + "\n");
  std::vector<std::string> remote;
  for (const Json& edge : json["edges"]) {
    if (edge["remote"].get<bool>()) remote.push_back(edge["from"].get<std::string>() + " " + edge["to"].get<std::string>());
  }
  EXPECT_THAT(remote, ElementsAre("prompts generate", "generate score", "generate reference", "generate values"));
}
TEST_F(PlanText, IsJsonForPrograms) { expect_golden("engine/plan/ppo.json", plan_json(plan_of(whitened()))); }

TEST_F(PlanText, SaysWhatACheckpointIsWrittenFromAndWhy) {
  const auto with = [](const std::string& checkpoint, const std::string& gib) {
    return edited(ppo_text(), "[runtime]\n", checkpoint + "[runtime]\nmemory_gib = " + gib + "\n");
  };
  const auto text_of = [&](const std::string& text) { return plan_text(plan_of(text)); };
  const std::string memory = "[checkpoint]\ncopy = \"memory\"\n", none = "[checkpoint]\ncopy = \"none\"\n";
  EXPECT_THAT(text_of(with("", "24")),
              HasSubstr("\n               written while training goes on, from a copy in memory, which"));
  EXPECT_THAT(text_of(with("", "0.00058")), HasSubstr("waits: beside a copy too little memory would be left\n"));
  EXPECT_THAT(text_of(with(memory, "24")), HasSubstr("from a copy in memory, as [checkpoint] copy says\n"));
  EXPECT_THAT(text_of(with(none, "24")), HasSubstr("without a copy in memory, as [checkpoint] copy says\n"));
  EXPECT_THAT(text_of(with(none, "24")), Not(HasSubstr("checkpoint copy")));
}

// The toy checkpoints are relative paths: the effective file names them absolutely, so this compares what does not depend on the
// folder.
TEST_F(PlanText, WritesAnEffectivePipelineThatReadsBackAsTheSame) {
  const std::string first = config_text(plan_of(lagging()));
  const auto without_origins = [](const std::string& text) {
    std::string out, line;
    std::istringstream lines(text);
    while (std::getline(lines, line)) out += line.substr(0, line.find("  #")) + "\n";
    return out;
  };
  const std::string second = config_text(plan_of(first));
  // Trailing blanks before the comments depend on nothing but the values.
  EXPECT_EQ(without_origins(first), without_origins(second));
  EXPECT_EQ(plan_text(plan_of(lagging())), plan_text(plan_of(first)));
}

TEST_F(PlanText, NamesTheOriginOfEveryKey) {
  const std::string text = config_text(plan_of(ppo_text()));
  expect_golden("engine/plan/config.txt", text.substr(text.find("[nodes.prompts]")));
}

}  // namespace
}  // namespace sluice::engine::testing::plan_text_test
