#include "engine/text/plan_text.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing {
namespace {

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

  Registry registry_;
};

TEST_F(PlanText, ShowsNodesMemoryOverlapAndWhyItCannotStall) {
  expect_golden("engine/plan/ppo.txt", plan_text(plan_of(ppo_text())));
}
TEST_F(PlanText, NamesTheBarrierThatTrainingWaitsFor) {
  expect_golden("engine/plan/barrier.txt", plan_text(plan_of(whitened())));
}
TEST_F(PlanText, CountsTheCopiesThatALagNeeds) { expect_golden("engine/plan/lag.txt", plan_text(plan_of(lagging()))); }
TEST_F(PlanText, IsJsonForPrograms) { expect_golden("engine/plan/ppo.json", plan_json(plan_of(whitened()))); }

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
}  // namespace sluice::engine::testing
