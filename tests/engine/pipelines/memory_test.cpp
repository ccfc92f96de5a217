#include <gmock/gmock.h>

#include "engine/check/check.h"
#include "engine/memory/memory_bound.h"
#include "engine/text/plan_text.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/toy_nodes.h"
#include "tests/golden.h"

namespace sluice::engine::testing::memory_test {
namespace {

constexpr Column<int64_t> kTokens{"tokens", Extent::kToken};
constexpr Column<std::string> kNote{"note", Extent::kSample};

struct FilterParams {};

class Items final : public Source {
 public:
  static void describe(Contract<FilterParams>& c) {
    c.type("items", "4 groups of 2 samples of 1 to 8 tokens");
    c.writes(kTokens);
    c.needs([](const FilterParams&, NodeNeeds& needs) {
      needs.groups_per_iteration = 4, needs.samples_per_group = 2, needs.worst_sample_tokens = 8;
    });
  }
  explicit Items(const FilterParams&) {}
  bool next_group(Group&) override { return false; }
};

class Half final : public Node {
 public:
  static void describe(Contract<FilterParams>& c) {
    c.type("half", "drops every second group");
    c.reads(kTokens);
    c.drops_groups();
  }
  explicit Half(const FilterParams&) {}
  void process(MicroBatch&) override {}
};

struct PassParams {
  std::vector<std::string> reads;
  std::string writes;
  int64_t note_bytes = 0;
};

// Reads and writes columns of one float32 a token; with note_bytes a text a sample too.
class Pass final : public Node {
 public:
  static void describe(Contract<PassParams>& c) {
    c.type("pass", "reads and writes columns");
    c.param("reads", &PassParams::reads).doc("columns");
    c.param("writes", &PassParams::writes).doc("column");
    c.param("note_bytes", &PassParams::note_bytes).doc("longest text of a note");
    c.needs([](const PassParams& p, NodeNeeds& needs) {
      for (const std::string& name : p.reads) {
        const DType dtype = name == "tokens" ? DType::kInt64 : name == "note" ? DType::kString : DType::kFloat32;
        needs.reads.push_back({name, dtype, name == "note" ? Extent::kSample : Extent::kToken});
      }
      if (!p.writes.empty()) needs.writes.push_back({p.writes, DType::kFloat32, Extent::kToken});
      if (p.note_bytes > 0) needs.writes.push_back(kNote.spec()), needs.string_bytes["note"] = p.note_bytes;
    });
  }
  explicit Pass(const PassParams&) {}
  void process(MicroBatch&) override {}
};

/// 64 tokens an iteration, at most 16 a micro-batch.
class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_.add<Items>();
    registry_.add<Half>();
    registry_.add<Pass>();
  }

  static std::string node(const std::string& name, const std::string& inputs, const std::string& reads, const std::string& writes,
                          const std::string& more = {}) {
    return "[nodes." + name + "]\ntype = \"pass\"\ninputs = [" + inputs + "]\nreads = [" + reads + "]\nwrites = \"" + writes +
           "\"\n" + more;
  }

  Plan plan_of(const std::string& nodes) {
    const std::string text = R"([pipeline]
iterations = 1
[budget]
tokens_in_flight = 64
micro_batch_tokens = 16
[runtime]
cores = 1
memory_gib = 1
[nodes.items]
type = "items"
)" + nodes;
    CheckResult result = check(spec_of(text), registry_);
    EXPECT_TRUE(result.plan.has_value()) << render(result.problems);
    return *result.plan;
  }

  // Over what tokens take, which are there twice while they are packed and while a group waits.
  int64_t columns_of(const std::string& nodes) {
    const Plan plan = plan_of(nodes);
    return worst_column_bytes(plan, plan.main_path(), 64) - base();
  }
  int64_t base() { return (64 + 16 + 16) * 8; }

  Registry registry_;
};

TEST_F(Memory, CountsAColumnForAllTokensInFlight) {
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "")), 0);
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "x") + node("b", "\"a\"", "\"x\"", "")), 64 * 4);
}

// x is gone before z comes: of x, y and z two are there at once. tokens is read to the end.
TEST_F(Memory, CountsOnlyColumnsThatCanBeAliveTogether) {
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "x") + node("b", "\"a\"", "\"x\"", "y") +
                       node("c", "\"b\"", "\"y\"", "z") + node("d", "\"c\"", "\"z\", \"tokens\"", "")),
            2 * 64 * 4);
}

// One of the two branches may be ahead: its column is alive beside those of the other.
TEST_F(Memory, CountsBranchesTogether) {
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "x") + node("b", "\"items\"", "\"tokens\"", "y") +
                       node("c", "\"a\", \"b\"", "\"x\", \"y\"", "")),
            2 * 64 * 4);
}

TEST_F(Memory, CountsWhatNobodyReadsForOneMicroBatch) {
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "x")), 16 * 4);
}

// tokens (8 bytes) is there twice: as it came, and as what the filter keeps.
TEST_F(Memory, CountsWhatAFilterCopies) {
  const std::string half = "[nodes.half]\ntype = \"half\"\ninputs = [\"items\"]\n";
  EXPECT_EQ(columns_of(half), 0);  // nobody reads what it keeps
  EXPECT_EQ(columns_of(half + node("a", "\"half\"", "\"tokens\"", "")), 64 * 8);
  EXPECT_EQ(columns_of(half + node("a", "\"half\"", "\"tokens\"", "") + node("b", "\"items\"", "\"tokens\"", "")), 64 * 8);
}

// 64 tokens are at most 64 samples, but 4 groups have no more than 8.
TEST_F(Memory, CountsTextAsTheContractBoundsIt) {
  EXPECT_EQ(columns_of(node("a", "\"items\"", "\"tokens\"", "", "note_bytes = 100\n") + node("b", "\"a\"", "\"note\"", "")),
            8 * (static_cast<int64_t>(sizeof(std::string)) + 101));
}

TEST_F(Memory, NeverTakesMoreColumnsThanForTheIterationsThatCanBeOpen) {
  const Plan plan = plan_of(node("a", "\"items\"", "\"tokens\"", ""));
  EXPECT_EQ(predict_memory(plan, 1 << 30).column_bytes, predict_memory(plan, 64).column_bytes);
}

/// The PPO pipeline; its models take 64 bytes of activations a token in training, 16 else, and one a token of the longest sample.
class PpoMemory : public ::testing::Test {
 protected:
  void SetUp() override { add_toy_nodes(registry_); }

  CheckResult checked(double memory_gib, const std::string& from = "cores = 1", const std::string& to = "cores = 1") {
    std::string text = edited(ppo_text(), from, to);
    text = edited(text, "[runtime]\n", "[runtime]\nmemory_gib = " + std::to_string(memory_gib) + "\n");
    return check(spec_of(text), registry_);
  }

  Registry registry_;
};

TEST_F(PpoMemory, CountsTheLargestPassOfEachExecutor) {
  EXPECT_EQ(checked(1).plan->memory.activation_bytes, 2048 * 64 + 44);
  std::string text = edited(ppo_text(), "cores = 1", "cores = 2");
  text = edited(text, "type = \"train_ppo\"", "type = \"train_ppo\"\non = \"cpu:1\"");
  EXPECT_EQ(check(spec_of(text), registry_).plan->memory.activation_bytes, 2048 * 64 + 44 + 2048 * 16 + 44);
}

const std::string kMicroBatch = "micro_batch_tokens = 2048";

TEST_F(PpoMemory, CountsAPassOfAMicroBatch) {
  const Plan plan = *checked(1, kMicroBatch, kMicroBatch + "\npass_tokens = 1200").plan;
  EXPECT_EQ(plan.memory.activation_bytes, 1200 * 64 + 44);
  EXPECT_EQ(plan.main_path().capacity.micro_batch_tokens, 2048);
}

TEST_F(PpoMemory, NeverCountsAPassOfMoreThanAMicroBatch) {
  EXPECT_EQ(checked(1, kMicroBatch, kMicroBatch + "\npass_tokens = 9000").plan->memory.activation_bytes, 2048 * 64 + 44);
}

// The choice is the same wherever there is enough.
TEST_F(PpoMemory, LeavesAPassToBeAWholeMicroBatchWhereThereIsRoom) {
  for (const double gib : {0.001, 1.0, 1000.0}) EXPECT_EQ(checked(gib).plan->budget.pass_tokens.value, 2048) << gib;
}

TEST_F(PpoMemory, ChoosesTheLargestPassThatLeavesMemory) {
  const CheckResult chosen = checked(0.00053);
  ASSERT_TRUE(chosen.plan.has_value()) << render(chosen.problems);
  const int64_t pass = chosen.plan->budget.pass_tokens.value;
  const auto leaves = [&](int64_t tokens) {
    Plan plan = *chosen.plan;
    plan.budget.pass_tokens.value = tokens;
    PlanMemory memory = predict_memory(plan, plan.budget.tokens_in_flight);
    memory.machine_bytes = plan.memory.machine_bytes;
    return leaves_memory(memory);
  };
  EXPECT_GT(pass, 1000);
  EXPECT_LT(pass, 2000);
  EXPECT_TRUE(leaves(pass));
  EXPECT_FALSE(leaves(pass + 1));
  EXPECT_TRUE(chosen.problems.empty());
  EXPECT_THAT(config_text(*chosen.plan),
              ::testing::ContainsRegex("\npass_tokens = " + std::to_string(pass) + " +# auto, default\n"));
}

// The last resort: here the pass is given, so only it is left.
TEST_F(PpoMemory, RecomputesWhereThePassLeavesNoMemoryAndThatHelps) {
  const auto within = [&](double memory_gib, bool may, int pass) {
    std::string text = edited(ppo_text(), "[runtime]\n", "[runtime]\nmemory_gib = " + std::to_string(memory_gib) + "\n");
    text = edited(text, kMicroBatch, kMicroBatch + "\npass_tokens = " + std::to_string(pass));
    for (const std::string model : {"[models.actor]\n", "[models.critic]\n"})
      if (may) text = edited(text, model, model + "may_recompute = true\n");
    return *check(spec_of(text), registry_).plan;
  };
  const auto recomputes = [](const Plan& plan) {
    return std::ranges::any_of(plan.models, [](const PlanModel& model) { return model.usage.recompute; });
  };
  const auto tight = [&](int pass, int64_t less) {  // a run without a copy, and so much less, would just leave memory
    const PlanMemory memory = within(1, false, pass).memory;
    return static_cast<double>(memory.total_bytes() - memory.copy_bytes - less) / 0.85 / (1024.0 * 1024.0 * 1024.0);
  };
  EXPECT_FALSE(recomputes(within(1, true, 2048))) << "there is room";
  EXPECT_FALSE(recomputes(within(tight(2048, 50000), false, 2048))) << "it may not";
  EXPECT_FALSE(recomputes(within(tight(44, 5000), true, 44))) << "the rollout takes more than so small a pass";
  const Plan chosen = within(tight(2048, 50000), true, 2048);
  EXPECT_TRUE(recomputes(chosen));
  EXPECT_THAT(plan_text(chosen), ::testing::HasSubstr("the backward of actor, critic computes each layer again"));
}

// What else there is has to fit all the same.
TEST_F(PpoMemory, ChoosesTheLongestSampleWhereNothingLeavesMemory) {
  const double least =
      static_cast<double>(checked(1, kMicroBatch, kMicroBatch + "\npass_tokens = 44").plan->memory.total_bytes());
  EXPECT_EQ(checked(least * 1.05 / (1024.0 * 1024.0 * 1024.0)).plan->budget.pass_tokens.value, 44);
}

// 12 bytes for each of the 1000 parameters of two models.
TEST_F(PpoMemory, CountsACopyForCheckpointsWhereThereIsOne) {
  EXPECT_EQ(checked(1).plan->memory.copy_bytes, 2 * 12000);
  EXPECT_EQ(checked(1, "[runtime]\n", "[checkpoint]\ncopy = \"none\"\n[runtime]\n").plan->memory.copy_bytes, 0);
  const auto with_lag = [&](const std::string& copy) {
    std::string text = edited(ppo_text(), "policy_lag = 0", "policy_lag = 2");
    text = edited(text, "cores = 1", "cores = 2\n[checkpoint]\ncopy = \"" + copy + "\"");
    text = edited(text, "critic = \"critic\"\n", "critic = \"critic\"\non = \"cpu:1\"\n");
    return check(spec_of(text), registry_).plan->memory.copy_bytes;
  };
  EXPECT_EQ(with_lag("none"), 3 * 4000);
  EXPECT_EQ(with_lag("memory"), 2 * 12000 + 2 * 3 * 4000);
}

double gib(double bytes) { return bytes / (1024.0 * 1024.0 * 1024.0); }

TEST_F(PpoMemory, GivesUpTheCopyBeforeItMakesThePassSmaller) {
  const auto total = static_cast<double>(checked(1).plan->memory.total_bytes());
  const Plan roomy = *checked(gib(total / 0.84)).plan, narrow = *checked(gib(total / 0.86)).plan;
  EXPECT_EQ(roomy.checkpoint_copy, CheckpointCopy::kMemory);
  EXPECT_EQ(narrow.checkpoint_copy, CheckpointCopy::kNone);
  EXPECT_EQ(narrow.budget.pass_tokens.value, 2048);
  EXPECT_EQ(narrow.memory.copy_bytes, 0);
}

// What is written holds, whatever it costs elsewhere.
TEST_F(PpoMemory, TakesACopyWhereThePipelineSaysSo) {
  const auto total = static_cast<double>(checked(1).plan->memory.total_bytes());
  const std::string copy = "[checkpoint]\ncopy = \"memory\"\n";
  const Plan plan = *checked(gib(total / 0.86), "[schedule]\n", copy + "[schedule]\n").plan;
  EXPECT_EQ(plan.checkpoint_copy, CheckpointCopy::kMemory);
  EXPECT_LT(plan.budget.pass_tokens.value, 2048);
  const CheckResult refused = checked(0.0003, "[schedule]\n", copy + "[schedule]\n");
  ASSERT_FALSE(refused.plan.has_value());
  EXPECT_THAT(render(refused.problems), ::testing::HasSubstr("copy = \"none\" in [checkpoint] takes 24.0 kB less"));
  EXPECT_THAT(render(refused.problems), ::testing::HasSubstr("checkpoint copy"));
}

TEST_F(PpoMemory, HasTheAllocatorsShareOfWhatComesAndGoes) {
  const PlanMemory memory = checked(1).plan->memory;
  const int64_t comes_and_goes = memory.kv_bytes + memory.column_bytes + memory.activation_bytes;
  EXPECT_EQ(memory.slack_bytes, (comes_and_goes + 19) / 20);
  const int64_t stays = memory.weights_bytes + memory.copy_bytes + memory.gradient_bytes + memory.optimizer_bytes;
  EXPECT_EQ(memory.total_bytes(), stays + comes_and_goes + memory.slack_bytes);
}

TEST_F(PpoMemory, IsRefusedWhereItDoesNotFit) {
  const int64_t total = checked(1).plan->memory.total_bytes();
  const double gib = 1024.0 * 1024.0 * 1024.0;
  EXPECT_TRUE(checked(static_cast<double>(total + 2000) / gib).plan.has_value());
  const CheckResult refused = checked(0.0003);
  EXPECT_FALSE(refused.plan.has_value());
  expect_golden("engine/memory/does_not_fit.txt", render(refused.problems));
}

// With the pass that is chosen, the smallest.
TEST_F(PpoMemory, OffersABudgetThatFits) {
  const CheckResult refused = checked(0.00035, "iterations = 120", "iterations = 2");
  ASSERT_FALSE(refused.plan.has_value());
  const std::string& help = refused.problems.front().help;
  const std::string begin = "tokens_in_flight <= ";
  ASSERT_EQ(help.substr(0, begin.size()), begin) << help;
  const int64_t tokens = std::stoll(help.substr(begin.size()));
  const auto with = [&](int64_t budget) {
    return checked(0.00035, "tokens_in_flight = 16384", "tokens_in_flight = " + std::to_string(budget)).plan.has_value();
  };
  EXPECT_TRUE(with(tokens));
  EXPECT_FALSE(with(tokens + 1));
}

TEST_F(PpoMemory, IsWarnedOfWhereLittleIsLeft) {
  const double total = static_cast<double>(checked(1).plan->memory.total_bytes());
  const CheckResult tight = checked(total * 1.02 / (1024.0 * 1024.0 * 1024.0), kMicroBatch, kMicroBatch + "\npass_tokens = 2048");
  EXPECT_TRUE(tight.plan.has_value());
  ASSERT_EQ(tight.problems.size(), 1u);
  EXPECT_EQ(tight.problems.front().severity, Severity::kWarning);
}

}  // namespace
}  // namespace sluice::engine::testing::memory_test
