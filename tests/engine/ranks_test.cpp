#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "engine/contract/pipeline_builder.h"
#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine {
namespace {

using testing::MailInOneProcess;

Array texts(std::vector<std::string> values) {
  Array array;
  for (std::string& value : values) array.push_back({.data = std::move(value), .where = {}, .base = {}});
  return array;
}

constexpr int64_t kMostDraws = 3;
constexpr int64_t kSlots = 6;  // so that two ranks have whole ones, and three

struct Shape {
  int64_t groups, samples, worst, micro_batch, lag, iterations, steps, pause_us;
  bool filters, refills, measures;
};

Shape random_shape(uint64_t seed) {
  RandomStream random(seed, 3);
  const auto any = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  Shape shape{.groups = any(1, 7), .samples = any(1, 3), .worst = any(2, 6)};
  shape.micro_batch = shape.samples * shape.worst * any(1, 3);
  shape.lag = any(0, 2);
  shape.iterations = shape.lag + any(1, 4);
  shape.steps = any(1, 3);
  shape.pause_us = seed % 4 == 0 ? 0 : 60;
  shape.filters = random.below(2) == 0;
  shape.refills = shape.filters && random.below(2) == 0;
  shape.measures = random.below(3) == 0;
  return shape;
}

PipelineSpec pipeline(const Shape& shape, uint64_t seed) {
  const int64_t group = shape.samples * shape.worst;
  const int64_t drawn = shape.groups * (shape.refills ? kMostDraws : 1);
  const int64_t budget = (shape.lag + 2) * (drawn * group + shape.micro_batch);
  const int64_t share = 2 * shape.micro_batch + (shape.refills ? kMostDraws : 1) * shape.groups * group;
  PipelineBuilder builder("ranks", static_cast<int64_t>(shape.iterations));
  builder.budget(budget + (shape.measures ? share : 0), shape.micro_batch)
      .set("pipeline", "seed", static_cast<int64_t>(seed))
      .set("runtime", "cores", int64_t{2})
      .set("cluster", "slots", kSlots)
      .model("policy", {});
  if (shape.lag > 0) builder.set("schedule", "policy_lag", shape.lag);
  const auto path = [&](const std::string& prefix, bool measures) {
    PipelineBuilder::Params source{{"groups_per_iteration", shape.groups}};
    if (measures) {
      source.push_back({"every_iterations", int64_t{2}});
      source.push_back({"tokens_in_flight", share});
    }
    builder.node(prefix + "source", "toy_source", {}, source);
    builder.node(prefix + "rollout", "toy_rollout", {prefix + "source"},
                 {{"model", std::string("policy")},
                  {"samples_per_group", shape.samples},
                  {"worst_sample_tokens", shape.worst},
                  {"pause_us", shape.pause_us}});
    std::string before = prefix + "rollout";
    if (shape.filters) {
      PipelineBuilder::Params filter{{"reads", texts({"drawn"})}};
      if (shape.refills && !measures) {
        filter.push_back({"most_draws", kMostDraws});
        filter.push_back({"oversample", 1.5});
        filter.push_back({"drop_one_in", int64_t{2}});
      }
      builder.node(prefix + "filter", "toy_filter", {before}, filter);
      before = prefix + "filter";
    }
    builder.node(prefix + "record", "tally_record", {before}, {{"pause_us", shape.pause_us}}, "cpu:1");
    if (measures) return;
    builder.node(prefix + "whiten", "tally_whiten", {prefix + "record"}, {{"steps", shape.steps}, {"pause_us", shape.pause_us}},
                 "cpu:1");
    builder.node(prefix + "train", "tally_train", {prefix + "whiten"}, {{"model", std::string("policy")}});
    builder.node(prefix + "publish", "toy_publish", {prefix + "train"}, {{"model", std::string("policy")}});
  };
  path("", false);
  if (shape.measures) path("held_", true);
  return builder.build();
}

std::string message_of(const RunSummary& summary) {
  if (!summary.error) return {};
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Bits, because a NaN or the sign of a zero would otherwise be missed.
using Rows = std::vector<std::vector<std::pair<std::string, uint64_t>>>;

// What repeats exactly of a run's lines.
Rows run(const Plan& plan, Reductions* reductions) {
  Rows rows;
  engine::Run run(plan, {.on_iteration =
                             [&](const IterationReport& report) {
                               auto& row = rows.emplace_back();
                               for (const auto& [name, value] : report.metrics) {
                                 if (!depends_on_timing(name)) row.emplace_back(name, std::bit_cast<uint64_t>(value));
                               }
                             },
                         .reductions = reductions});
  const RunSummary summary = run.execute();
  EXPECT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
  return rows;
}

std::vector<Rows> run_ranks(const Plan& plan, int size, uint64_t seed, int64_t pause_us) {
  MailInOneProcess mail(size, seed, pause_us);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::vector<Rows> rows(static_cast<size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < rows.size(); ++rank)
      threads.emplace_back([&, rank] { rows[rank] = run(plan, ranks[rank].get()); });
  }
  mail.close();
  EXPECT_TRUE(mail.failures().empty());
  for (const auto& rank : ranks) EXPECT_EQ(rank->open(), 0u) << "some rank has contributed to what another has not";
  return rows;
}

// 1,000 pipelines in all; a tenth where a sanitizer makes each many times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kPipelinesATest = 25;
#else
constexpr uint64_t kPipelinesATest = 250;
#endif

class Ranks : public ::testing::TestWithParam<uint64_t> {};

// Two and three ranks, whatever their delays, give the lines of one process byte for byte: means, moments, sums, maxima, names
// made up on the way, moments in several steps of a barrier, and weights that are trained on what all have added.
TEST_P(Ranks, GiveTheMetricsOfOneProcess) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    const Shape shape = random_shape(seed);
    const CheckResult checked = check(pipeline(shape, seed), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    const Rows alone = run(*checked.plan, nullptr);
    ASSERT_EQ(static_cast<int64_t>(alone.size()), shape.iterations);
    const CheckResult shared = check(pipeline(shape, seed), registry, seed % 2 == 0 ? 2 : 3);
    ASSERT_TRUE(shared.plan) << render(shared.problems);
    for (const Rows& rows : run_ranks(*shared.plan, shared.plan->ranks, seed, shape.pause_us)) ASSERT_EQ(rows, alone);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Ranks, ::testing::Range<uint64_t>(0, 4));

// One mechanism tells ranks what all have measured, so that both have the same line, and the plan knows its names.
TEST(Ranks, HaveTheSameSecondsAndBytesOfAll) {
  Registry registry;
  toy::register_toys(registry);
  PipelineBuilder builder("ranks", 3);
  builder.budget(64, 8).set("runtime", "cores", int64_t{2});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{4}}});
  builder.node("rollout", "toy_rollout", {"source"}, {});
  builder.node("mix", "toy_mix", {"rollout"}, {{"reads", texts({"drawn"})}, {"writes", std::string("mixed")}}, "cpu:1");
  const CheckResult checked = check(builder.build(), registry, 2);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  MailInOneProcess mail(2, 0, 0);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::vector<std::vector<MetricRow>> rows(2);
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto note = [&](const IterationReport& report) { rows[rank].push_back(report.metrics); };
        engine::Run run(*checked.plan, {.on_iteration = note, .reductions = ranks[rank].get()});
        EXPECT_EQ(message_of(run.execute()), "");
      });
    }
  }
  mail.close();
  ASSERT_EQ(rows[0].size(), 3u);
  EXPECT_EQ(rows[0], rows[1]);
  const std::vector<std::string> known = metrics::all_names(*checked.plan);
  for (const MetricRow& row : rows[0]) {
    std::vector<std::string> names;
    for (const auto& [name, value] : row) {
      if (name.find('/') != std::string::npos) names.push_back(name);
    }
    EXPECT_THAT(names, ::testing::IsSubsetOf(known));
    EXPECT_THAT(names,
                ::testing::IsSupersetOf({"time/iteration_seconds", "time/iteration_seconds/min", "time/iteration_seconds/max",
                                         "time/node/mix/busy_seconds/max", "memory/resident_bytes/mean"}));
  }
}

// Rank 0 alone is saved, so what nodes keep must be the same on all: what is not ends the run before it is saved.
TEST(Ranks, ANodeThatKeepsSomethingOfItsOwnIsNamed) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  for (const bool own : {false, true}) {
    PipelineBuilder builder("ranks", 2);
    builder.budget(64, 8).set("runtime", "cores", int64_t{2});
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{4}}});
    builder.node("rollout", "toy_rollout", {"source"}, {});
    builder.node("keep", "tally_keep", {"rollout"}, {{"own", own}});
    const CheckResult checked = check(builder.build(), registry, 2);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    MailInOneProcess mail(2, 0, 0);
    std::vector<std::unique_ptr<MailedReductions>> ranks;
    for (int rank = 0; rank < 2; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
    std::vector<std::string> said(2);
    {
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < said.size(); ++rank) {
        threads.emplace_back([&, rank] {
          engine::Run run(*checked.plan, {.reductions = ranks[rank].get()});
          said[rank] = message_of(run.execute());
        });
      }
    }
    mail.close();
    const auto names = ::testing::AllOf(::testing::HasSubstr("'keep'"), ::testing::HasSubstr("not the same on all ranks"));
    for (const std::string& text : said) {
      if (own)
        EXPECT_THAT(text, names);
      else
        EXPECT_EQ(text, "");
    }
  }
}

// The other rank never comes: a node that fails meanwhile ends the run all the same.
TEST(Ranks, OneThatWaitsForAnotherEndsWhenANodeFails) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  PipelineBuilder builder("ranks", 3);
  builder.budget(64, 8).set("runtime", "cores", int64_t{2});
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{4}}});
  builder.node("rollout", "toy_rollout", {"source"}, {});
  builder.node("record", "tally_record", {"rollout"}, {});
  builder.node("whiten", "tally_whiten", {"record"}, {});
  builder.node("late", "toy_mix", {"rollout"},
               {{"reads", texts({"drawn"})}, {"writes", std::string("late")}, {"fail_in_iteration", int64_t{1}}}, "cpu:1");
  const CheckResult checked = check(builder.build(), registry, 2);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  MailInOneProcess mail(2, 0, 0);
  MailedReductions reductions(mail.rank(0));
  engine::Run run(*checked.plan, {.reductions = &reductions});
  const RunSummary summary = run.execute();
  mail.close();
  EXPECT_EQ(summary.end, RunEnd::kFailed);
  EXPECT_THAT(message_of(summary), ::testing::HasSubstr("'late'"));
  EXPECT_EQ(summary.iterations, 0);
}

}  // namespace
}  // namespace sluice::engine
