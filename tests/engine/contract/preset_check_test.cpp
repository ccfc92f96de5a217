#include "engine/contract/preset_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/text/plan_text.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::preset_check_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct PickyParams {
  bool active = false;
  int64_t strength = 1;
};

// Refuses a strength that is written in vain.
class Picky final : public Node {
 public:
  static void describe(Contract<PickyParams>& c) {
    c.type("picky", "does nothing with care");
    c.param("active", &PickyParams::active).doc("whether strength counts");
    c.param("strength", &PickyParams::strength).between(0, 10).doc("how much");
    c.reads(Column<float>{"advantages", Extent::kAction});
    c.check([](const PickyParams& p, Findings& findings) {
      if (!p.active && findings.changed("strength"))
        findings.without_effect("strength", "strength has no effect while active is false", "remove strength");
    });
  }
  explicit Picky(const PickyParams&) {}
  void process(MicroBatch&) override {}
};

Preset other_system() {
  Preset preset("other", "what the other one does");
  preset.set("gae", "lambda", 0.5, "config.yaml: lam");
  preset.set("gae", "discount", 0.9, "config.yaml: gamma");
  preset.set("gae", "whiten", "iteration", "advantage.py");
  preset.set("objective:ppo_clip", "clip", 0.3, "loss.py: clip_ratio");
  preset.set("model.optimizer", "learning_rate", 0.5, "optim.yaml: lr");
  preset.set("picky", "strength", 3, "config.yaml: strength");
  return preset;
}

class Presets : public ::testing::Test {
 protected:
  void SetUp() override {
    add_toy_nodes(registry_);
    registry_.add<Picky>();
    registry_.add_preset(other_system());
  }

  static std::string with_preset(std::string text = ppo_text(), const std::string& name = "other") {
    text = edited(text, "[runtime]\n", "[runtime]\nmemory_gib = 24\n");
    return edited(text, "seed = 17\n", "seed = 17\npreset = \"" + name + "\"\n");
  }
  static std::string with_picky(const std::string& keys) {
    return with_preset() + "\n[nodes.picky]\ntype = \"picky\"\ninputs = [\"advantages\"]\n" + keys;
  }

  Plan plan_of(const std::string& text) {
    CheckResult result = check(spec_of(text), registry_);
    EXPECT_EQ(render(result.problems), "");
    return result.plan.value();
  }

  void expect_refused(const std::string& golden, const std::string& text) {
    const CheckResult result = check(spec_of(text), registry_);
    EXPECT_FALSE(result.plan.has_value());
    expect_known_kinds(result.problems);
    expect_golden("engine/preset/" + golden + ".txt", render(result.problems));
  }

  static std::string key_of(const Plan& plan, const std::string& table, const std::string& key) {
    for (const EffectiveKey& effective : plan.effective) {
      if (effective.table == table && effective.key == key) return effective.text + "  # " + effective.origin;
    }
    return "no such key";
  }

  Registry registry_;
};

TEST_F(Presets, SetWhatTheFileDoesNotWrite) {
  const Plan plan = plan_of(with_preset());
  EXPECT_EQ(key_of(plan, "nodes.advantages", "discount"), "0.9  # preset other");
  EXPECT_EQ(key_of(plan, "nodes.advantages", "lambda"), "0.95  # pipeline.toml:63");
  EXPECT_EQ(plan.nodes[6].needs.scope, Scope::kIteration);  // whiten is set for the checks and the run, not only for show
}

TEST_F(Presets, SetTheParametersOfAComponentThatIsNotWritten) {
  EXPECT_EQ(key_of(plan_of(with_preset()), "nodes.train", "objective"),
            "{ type = \"ppo_clip\", clip = 0.3 }  # default; preset other: clip");
}

TEST_F(Presets, SetTheParametersOfAComponentThatIsWrittenByName) {
  const std::string text = edited(with_preset(), "critic = \"critic\"\n", "critic = \"critic\"\nobjective = \"ppo_clip\"\n");
  EXPECT_EQ(key_of(plan_of(text), "nodes.train", "objective"),
            "{ type = \"ppo_clip\", clip = 0.3 }  # pipeline.toml:70; preset other: clip");
}

TEST_F(Presets, SetAParameterOfEveryComponentOfAKindAndThatOfOneComponentFirst) {
  Preset broad("broad", "for every objective");
  broad.set("objective:*", "clip", 0.4, "loss.py");
  registry_.add_preset(broad);
  EXPECT_EQ(key_of(plan_of(with_preset(ppo_text(), "broad")), "nodes.train", "objective"),
            "{ type = \"ppo_clip\", clip = 0.4 }  # default; preset broad: clip");
  broad.name = "narrow";
  broad.set("objective:ppo_clip", "clip", 0.6, "loss.py");
  registry_.add_preset(broad);
  EXPECT_EQ(key_of(plan_of(with_preset(ppo_text(), "narrow")), "nodes.train", "objective"),
            "{ type = \"ppo_clip\", clip = 0.6 }  # default; preset narrow: clip");
}

TEST_F(Presets, LeaveParametersOfAComponentThatAreWritten) {
  const std::string text =
      edited(with_preset(), "critic = \"critic\"\n", "critic = \"critic\"\nobjective = { type = \"ppo_clip\", clip = 0.1 }\n");
  EXPECT_EQ(key_of(plan_of(text), "nodes.train", "objective"), "{ type = \"ppo_clip\", clip = 0.1 }  # pipeline.toml:70");
}

TEST_F(Presets, SetKeysOfTablesThatAreWritten) {
  const std::string text = edited(with_preset(), "optimizer = { learning_rate = 3e-4 }", "optimizer = {}");
  const Plan plan = plan_of(text);
  EXPECT_EQ(key_of(plan, "models.actor", "optimizer"),
            "{ learning_rate = 0.5 }  # pipeline.toml:20; preset other: learning_rate");
  EXPECT_EQ(key_of(plan, "models.critic", "optimizer"), "{ learning_rate = 0.001 }  # pipeline.toml:28");
  EXPECT_EQ(key_of(plan, "models.reference", "optimizer"), "  # default");  // a frozen model stays frozen
}

TEST_F(Presets, AreShownByThePlanAndTheEffectivePipeline) {
  const Plan plan = plan_of(with_preset());
  EXPECT_THAT(plan_text(plan), HasSubstr("a sample; preset other; policy lag 0\n"));
  EXPECT_THAT(plan_json(plan), HasSubstr("\"preset\": \"other\""));
  const std::string text = config_text(plan);
  EXPECT_THAT(text, HasSubstr("preset = \"other\""));
  expect_golden("engine/preset/config.txt", text.substr(text.find("[nodes.prompts]")));
}

TEST_F(Presets, AreNotNamedWhereNoneIsWritten) {
  const Plan plan = plan_of(edited(ppo_text(), "[runtime]\n", "[runtime]\nmemory_gib = 24\n"));
  EXPECT_THAT(plan_text(plan), Not(HasSubstr("preset")));
  EXPECT_THAT(config_text(plan), HasSubstr("# preset is not set\n"));
}

std::string without_origins(const std::string& text) {
  std::string out, line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) {
    const std::string value = line.substr(0, line.find("  #"));
    out += value.substr(0, value.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

TEST_F(Presets, GiveAnEffectivePipelineThatReadsBackAsTheSame) {
  const Plan plan = plan_of(with_picky(""));
  const Plan again = plan_of(config_text(plan));
  EXPECT_EQ(without_origins(config_text(plan)), without_origins(config_text(again)));
  EXPECT_EQ(plan_text(plan), plan_text(again));
}

TEST_F(Presets, AreNoKeysThatTheUserWroteInVain) {
  EXPECT_EQ(key_of(plan_of(with_picky("")), "nodes.picky", "strength"), "3  # preset other");
}

TEST_F(Presets, DoNotExcuseAKeyThatTheUserWroteInVain) { expect_refused("written_in_vain", with_picky("strength = 1\n")); }

TEST_F(Presets, AreSuggestedWhenMisspelt) { expect_refused("misspelt", with_preset(ppo_text(), "othr")); }
TEST_F(Presets, AreListedWhenNoneIsNear) { expect_refused("unknown", with_preset(ppo_text(), "mystery")); }

TEST_F(Presets, AreRefusedWhereTheyHaveNothingToSay) {
  Preset idle("idle", "of no use");
  idle.set("picky", "strength", 2, "nowhere");
  registry_.add_preset(std::move(idle));
  expect_refused("without_effect", with_preset(ppo_text(), "idle"));
}

TEST_F(Presets, AreNamedWhereWhatTheyGiveIsTheCause) {
  expect_refused("named_as_cause", edited(with_preset(), "tokens_in_flight = 16384", "tokens_in_flight = 4096"));
}

TEST_F(Presets, OfAPluginAreCheckedAgainstTheTypes) {
  Preset wrong("wrong", "of another version");
  wrong.set("gae", "lamda", 0.5, "a typing error");
  wrong.set("gae", "lambda", 1.5, "out of range");
  wrong.set("gee", "lambda", 0.5, "no such type");
  wrong.set("objective:ppo_clip", "clip", "wide", "no number");
  wrong.set("objective:*", "clips", 0.5, "no objective has it");
  wrong.set("model.optimiser", "learning_rate", 0.5, "no such table");
  wrong.set("model.optimizer", "learning_rate", -1.0, "out of range");
  registry_.add_preset(std::move(wrong));
  expect_refused("wrong_values", with_preset(ppo_text(), "wrong"));
}

TEST_F(Presets, WithoutMistakesHaveNoProblems) { EXPECT_EQ(render(preset_problems(other_system(), registry_)), ""); }

TEST_F(Presets, CannotHaveOneNameTwice) {
  registry_.set_origin("more.so");
  EXPECT_THAT([&] { registry_.add_preset(other_system()); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("preset \"other\" of more.so is already taken by builtin")));
}

TEST_F(Presets, AreDescribedWithTheirSources) {
  expect_golden("engine/preset/describe.txt", describe_text(registry_.presets().at("other")));
}

}  // namespace
}  // namespace sluice::engine::testing::preset_check_test
