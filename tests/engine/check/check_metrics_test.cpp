// What a pipeline will record is known, and proven, before it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/observe/engine_metrics.h"
#include "engine/run/run.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::check_metrics_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;

struct TellerParams {
  std::string what = "length";
  bool lies = false;
};

class Teller final : public Node {
 public:
  static void describe(Contract<TellerParams>& c) {
    c.type("teller", "records a metric whose name is a parameter");
    c.param("what", &TellerParams::what).doc("its last part");
    c.param("lies", &TellerParams::lies).doc("records another one");
    c.reads(toy::kDrawn);
    c.metrics("reward/WHAT", Metric::kMean, "", [](const TellerParams& p) { return std::vector{"reward/" + p.what}; });
  }
  Teller(const TellerParams& params, NodeResources& resources) : params_(params), metrics_(*resources.metrics) {}
  void process(MicroBatch&) override { metrics_.mean("reward/" + params_.what + (params_.lies ? "_not" : ""), 1); }

 private:
  TellerParams params_;
  MetricsRecorder& metrics_;
};

struct NamerParams {
  std::vector<std::string> means, moments, families;
};

class Namer final : public Node {
 public:
  static void describe(Contract<NamerParams>& c) {
    c.type("namer", "declares any metrics");
    c.param("means", &NamerParams::means).doc("names");
    c.param("moments", &NamerParams::moments).doc("names");
    c.param("families", &NamerParams::families).doc("beginnings");
    c.reads(toy::kDrawn);
    c.metrics("MEANS", Metric::kMean, "", [](const NamerParams& p) { return p.means; });
    c.metrics("MOMENTS", Metric::kMoments, "", [](const NamerParams& p) { return p.moments; });
    c.needs([](const NamerParams& p, NodeNeeds& needs) {
      for (const std::string& name : p.families) needs.metrics.push_back({.name = name, .is_family = true});
    });
  }
  explicit Namer(const NamerParams&) {}
  void process(MicroBatch&) override {}
};

struct RouterTellerParams {
  std::string model;
};

class RouterTeller final : public Node {
 public:
  static void describe(Contract<RouterTellerParams>& c) {
    c.type("router_teller", "records a metric of a mixture of experts");
    c.model("model", &RouterTellerParams::model, ModelUse::kReads).required().doc("whose metric");
    c.reads(toy::kDrawn);
    const auto always = [](const RouterTellerParams&) { return true; };
    c.metric_of_mixture("model", always, "router/load", Metric::kMean, "of a mixture");
  }
  RouterTeller(const RouterTellerParams&, NodeResources&) {}
  void process(MicroBatch&) override {}
};

class CheckMetrics : public ::testing::Test {
 protected:
  void SetUp() override {
    toy::register_toys(registry_);
    registry_.add<Teller>();
    registry_.add<RouterTeller>();
    registry_.add<Namer>();
    builder_.budget(64, 16).set("runtime", "cores", int64_t{1}).model("policy", {});
    builder_.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{8}}});
    builder_.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"worst_sample_tokens", int64_t{4}}});
  }

  void add_teller(const std::string& name, const std::string& what, bool lies = false) {
    builder_.node(name, "teller", {"rollout"}, {{"what", what}, {"lies", lies}});
  }

  void add_router_teller(const std::string& name, const std::string& model) {
    builder_.model(model, {}).node(name, "router_teller", {"rollout"}, {{"model", model}});
  }

  /// What is wrong with a node 'a' that declares these.
  std::string refusal(const std::string& key, const std::vector<std::string>& names, const std::string& of_means = {}) const {
    const auto array = [](const std::vector<std::string>& texts) {
      Array all;
      for (const std::string& text : texts) all.push_back({text, {}, {}});
      return all;
    };
    PipelineBuilder::Params params{{key, array(names)}};
    if (!of_means.empty()) params.emplace_back("means", array({of_means}));
    PipelineBuilder builder = builder_;
    const CheckResult result = check(builder.node("a", "namer", {"rollout"}, params).build(), registry_);
    EXPECT_EQ(result.plan.has_value(), !has_errors(result.problems));
    const auto found = std::ranges::find(result.problems, "metric-unusable", &Problem::kind);
    return found == result.problems.end() ? "accepted" : found->message;
  }

  CheckResult checked() const { return check(builder_.build(), registry_); }
  CheckResult checked_with_prefix(const std::string& node, const std::string& prefix) const {
    PipelineSpec spec = builder_.build();
    for (NodeSpec& one : spec.nodes) {
      if (one.name.text == node) one.metrics_prefix = {prefix, {}};
    }
    return check(spec, registry_);
  }

  Registry registry_;
  PipelineBuilder builder_{"metrics", 1};
};

TEST_F(CheckMetrics, ThePlanKnowsNamesThatFollowFromParameters) {
  add_teller("a", "length");
  const CheckResult result = checked();
  ASSERT_TRUE(result.plan) << render(result.problems);
  EXPECT_THAT(metrics::names_of(result.plan->nodes.back()), ::testing::ElementsAre("reward/length"));
  EXPECT_THAT(metrics::all_names(*result.plan), AllOf(Contains("reward/length"), Contains("rollout/sampled_tokens")));
}

TEST_F(CheckMetrics, AMetricOfAMixtureIsThereOnlyWhereTheModelIsOne) {
  add_router_teller("a", "dense");
  add_router_teller("b", "mixture");
  const CheckResult result = checked();
  ASSERT_TRUE(result.plan) << render(result.problems);
  const std::vector<PlanNode>& nodes = result.plan->nodes;
  EXPECT_THAT(metrics::names_of(nodes[nodes.size() - 2]), ::testing::IsEmpty());
  EXPECT_THAT(metrics::names_of(nodes.back()), ::testing::ElementsAre("router/load"));
}

TEST_F(CheckMetrics, TwoMixturesNeedTwoNames) {
  add_router_teller("a", "mixture_a");
  add_router_teller("b", "mixture_b");
  EXPECT_THAT(render(checked().problems), HasSubstr("'b' records router/load, which 'a' records too"));
}

TEST_F(CheckMetrics, ARunRecordsNothingThatThePlanDoesNotKnow) {
  add_teller("a", "length");
  const CheckResult result = checked();
  ASSERT_TRUE(result.plan) << render(result.problems);
  std::vector<std::string> recorded;
  const auto note = [&](const IterationReport& report) {
    for (const auto& [name, value] : report.metrics) {
      if (name.find('/') != std::string::npos) recorded.push_back(name);
    }
  };
  engine::Run run(*result.plan, {.on_executor_start = {}, .on_iteration = note});
  ASSERT_EQ(run.execute().end, RunEnd::kDone);
  EXPECT_THAT(recorded, IsSubsetOf(metrics::all_names(*result.plan)));
  EXPECT_THAT(recorded, Contains("reward/length"));
}

TEST_F(CheckMetrics, TwoNodesThatRecordOneNameAreRefused) {
  add_teller("a", "length");
  add_teller("b", "length");
  const CheckResult result = checked();
  EXPECT_FALSE(result.plan);
  EXPECT_THAT(render(result.problems), AllOf(HasSubstr("'b' records reward/length, which 'a' records too"),
                                             HasSubstr("metrics_prefix = \"b\" in 'b' makes it b/reward/length")));
}

// A line of metrics.jsonl is JSON, and each name in it a key.
TEST_F(CheckMetrics, ANameThatCannotBeAKeyIsRefused) {
  const std::string declares = "type \"namer\" of 'a' declares a metric ";
  EXPECT_EQ(refusal("means", {""}), declares + "\"\", which cannot be one: it is empty");
  EXPECT_THAT(refusal("means", {"\xff"}), HasSubstr("it is not UTF-8"));
  EXPECT_THAT(refusal("moments", {"reward/a b"}), HasSubstr("it has a blank or a control character"));
  EXPECT_THAT(refusal("means", {"reward//a"}), HasSubstr("a part of it is empty"));
  EXPECT_THAT(refusal("families", {""}), HasSubstr("it is empty"));
  EXPECT_EQ(refusal("families", {"reward/a/"}), "accepted");
}

TEST_F(CheckMetrics, ANameThatANodeGivesTwoMetricsIsRefused) {
  EXPECT_EQ(refusal("moments", {"reward/x"}, "reward/x"), "accepted");
  EXPECT_EQ(refusal("moments", {"reward/x"}, "reward/x_mean"),
            "type \"namer\" of 'a' declares a metric \"reward/x_mean\" in two ways");
  EXPECT_EQ(refusal("means", {"reward/x", "reward/x"}), "accepted") << "it is one metric";
}

TEST_F(CheckMetrics, ANameOfTheRunIsRefused) {
  EXPECT_EQ(refusal("means", {"iteration"}),
            "type \"namer\" of 'a' declares a metric \"iteration\": \"iteration\" is what the run records itself");
  for (const char* name : {"policy_version", "policy_lag", "time/iteration_seconds", "time/node/a/busy_seconds",
                           "time/executor/cpu/busy_seconds", "memory/resident_bytes", "engine/tokens_in_flight_max"})
    EXPECT_THAT(refusal("means", {name}), HasSubstr("is what the run records itself"));
  EXPECT_THAT(refusal("families", {"time/"}), HasSubstr("is what the run records itself"));
  EXPECT_EQ(refusal("means", {"time/of_my_own_seconds"}), "accepted");
}

TEST_F(CheckMetrics, APrefixPartsThem) {
  add_teller("a", "length");
  add_teller("b", "length");
  const CheckResult result = checked_with_prefix("b", "second");
  ASSERT_TRUE(result.plan) << render(result.problems);
  EXPECT_THAT(metrics::all_names(*result.plan), AllOf(Contains("reward/length"), Contains("second/reward/length")));
}

TEST_F(CheckMetrics, APrefixThatReadsLikeAGroupOfTimingIsRefused) {
  add_teller("a", "length");
  EXPECT_THAT(render(checked_with_prefix("a", "time").problems), HasSubstr("\"time\" cannot stand in front"));
  EXPECT_THAT(render(checked_with_prefix("a", "a/b").problems), HasSubstr("letters, digits, _ and -"));
}

TEST_F(CheckMetrics, TheBestCheckpointIsOfAMetricThatIsRecorded) {
  add_teller("a", "length");
  builder_.set("checkpoint", "every_iterations", int64_t{1}).set("checkpoint", "keep_best", std::string("length"));
  EXPECT_THAT(render(checked().problems),
              AllOf(HasSubstr("no node records a metric \"length\""), HasSubstr("did you mean \"reward/length\"?")));
}

TEST_F(CheckMetrics, ARunEndsWhereANodeRecordsWhatItDoesNotDeclare) {
  add_teller("a", "length", /*lies=*/true);
  const CheckResult result = checked();
  ASSERT_TRUE(result.plan) << render(result.problems);
  engine::Run run(*result.plan, {});
  const RunSummary summary = run.execute();
  ASSERT_EQ(summary.end, RunEnd::kFailed);
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("node 'a'"), HasSubstr("metric 'reward/length_not'"), HasSubstr("does not declare")));
  }
}

TEST(Metrics, OfAnotherGroupOrMisspeltAreFound) {
  const std::vector<std::string> names{"policy/loss", "reward/score_mean", "time/iteration_seconds"};
  EXPECT_EQ(nearest_metric("score_mean", names), "reward/score_mean");
  EXPECT_EQ(nearest_metric("policy_loss", names), "policy/loss");
  EXPECT_EQ(nearest_metric("held_out/score_mean", {"reward/score_mean", "held_out/reward/score_mean"}),
            "held_out/reward/score_mean");
  EXPECT_EQ(nearest_metric("reward/score_maen", names), "reward/score_mean");
  EXPECT_EQ(nearest_metric("score_maen", names), "reward/score_mean");
  EXPECT_EQ(nearest_metric("entropy", names), "");
}

}  // namespace
}  // namespace sluice::engine::check_metrics_test
