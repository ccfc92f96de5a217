#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/sanitized.h"

namespace sluice::engine::ranks_test {
namespace {

using testing::MailInOneProcess;

Array texts(std::vector<std::string> values) {
  Array array;
  for (std::string& value : values) array.push_back({.data = std::move(value), .where = {}, .base = {}});
  return array;
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
constexpr uint64_t kPipelinesATest = tests::kSanitized ? 25 : 250;

class Ranks : public ::testing::TestWithParam<uint64_t> {};

// Two and three ranks, whatever their delays, give the lines of one process byte for byte: means, moments, sums, maxima, names
// made up on the way, moments in several steps of a barrier, and weights that are trained on what all have added.
TEST_P(Ranks, GiveTheMetricsOfOneProcess) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    const toy::RanksShape shape = toy::random_ranks_shape(seed);
    const CheckResult checked = check(toy::ranks_pipeline(shape, seed), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    const Rows alone = run(*checked.plan, nullptr);
    ASSERT_EQ(static_cast<int64_t>(alone.size()), shape.iterations);
    const CheckResult shared = check(toy::ranks_pipeline(shape, seed), registry, seed % 2 == 0 ? 2 : 3);
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

class SeenMeetings final : public WorkObserver {
 public:
  void met(const Meeting& meeting) override {
    const std::lock_guard lock(mutex_);
    EXPECT_LE(meeting.came_ns, meeting.went_on_ns);
    points_.insert({meeting.iteration, meeting.node, meeting.number});
    ++count_;
  }
  const std::set<std::array<int64_t, 3>>& points() const { return points_; }
  size_t count() const { return count_; }

 private:
  std::mutex mutex_;
  std::set<std::array<int64_t, 3>> points_;
  size_t count_ = 0;
};

// For the arrows of a trace.
TEST(Ranks, TellOfTheSamePointsOnceEach) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  const toy::RanksShape shape{.groups = 6, .iterations = 3, .steps = 2};
  const CheckResult checked = check(toy::ranks_pipeline(shape, 1), registry, 2);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  MailInOneProcess mail(2, 0, 0);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::array<SeenMeetings, 2> seen;
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        engine::Run run(*checked.plan, {.observers = {&seen[rank]}, .reductions = ranks[rank].get()});
        EXPECT_EQ(message_of(run.execute()), "");
      });
    }
  }
  mail.close();
  EXPECT_EQ(seen[0].points(), seen[1].points());
  for (const SeenMeetings& meetings : seen) EXPECT_EQ(meetings.count(), meetings.points().size());
  // Of an iteration: record at its end, whiten in two steps and at its end, train at its end and with its weights.
  EXPECT_EQ(seen[0].points().size(), 3u * (1 + 3 + 2));
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
}  // namespace sluice::engine::ranks_test
