#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"

// Ranks that make groups for each other: several worlds in one process, connected by mail and parcels that come in any order.
namespace sluice::engine {
namespace {

using testing::MailInOneProcess;
using testing::ParcelsInOneProcess;

// Bits, because a NaN or the sign of a zero would otherwise be missed.
using Rows = std::vector<std::vector<std::pair<std::string, uint64_t>>>;

struct Outcome {
  Rows rows;              // what repeats exactly of a run's lines
  double for_others = 0;  // groups that were made for other ranks, by the rank that made most, of all iterations
};

std::string message_of(const RunSummary& summary) {
  if (!summary.error) return {};
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void note(const IterationReport& report, Outcome& outcome) {
  auto& row = outcome.rows.emplace_back();
  for (const auto& [name, value] : report.metrics) {
    if (name == metrics::kGroupsForOthers) outcome.for_others += value;
    if (!depends_on_timing(name)) row.emplace_back(name, std::bit_cast<uint64_t>(value));
  }
}

Outcome run(const Plan& plan, Reductions* reductions, std::optional<RankLinks> links) {
  Outcome outcome;
  engine::Run run(
      plan,
      {.on_iteration = [&](const IterationReport& report) { note(report, outcome); }, .reductions = reductions, .links = links});
  const RunSummary summary = run.execute();
  EXPECT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
  return outcome;
}

std::vector<Outcome> run_ranks(const Plan& plan, uint64_t seed, int64_t pause_us) {
  MailInOneProcess mail(plan.ranks, seed, pause_us);
  ParcelsInOneProcess parcels(plan.ranks, seed, pause_us);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::vector<Outcome> outcomes(static_cast<size_t>(plan.ranks));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const int index = static_cast<int>(rank);
        outcomes[rank] = run(plan, ranks[rank].get(), RankLinks{mail.rank(index), parcels.rank(index)});
      });
    }
  }
  mail.close();
  parcels.close();
  EXPECT_TRUE(mail.failures().empty());
  EXPECT_TRUE(parcels.failures().empty());
  return outcomes;
}

// 500 pipelines in all; fewer where a sanitizer makes each many times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kPipelinesATest = 12;
#else
constexpr uint64_t kPipelinesATest = 125;
#endif

class RanksHelp : public ::testing::TestWithParam<uint64_t> {
 protected:
  RanksHelp() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  // Credit is short where there are more groups than a rank has tokens for: no barrier keeps an iteration.
  static toy::RanksShape random_shape(uint64_t seed) {
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    shape.groups = 6 + static_cast<int64_t>(seed % 30);
    shape.whitens = false;
    return shape;
  }

  Registry registry_;
};

// Whoever makes the groups, in whatever order: the lines are those of one process, bit for bit.
TEST_P(RanksHelp, GiveTheMetricsOfOneProcess) {
  double for_others = 0;
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = random_shape(seed);
    const int size = seed % 2 == 0 ? 2 : 3;
    const CheckResult alone = check(toy::ranks_pipeline(shape, seed), registry_);
    ASSERT_TRUE(alone.plan) << render(alone.problems);
    shape.budget = toy::least_budget(shape, seed, registry_, size);
    const CheckResult shared = check(toy::ranks_pipeline(shape, seed), registry_, size);
    ASSERT_TRUE(shared.plan) << render(shared.problems);
    EXPECT_EQ(shared.plan->shares_making(), shape.budget < shared.plan->main_path().capacity.iteration_tokens);
    const Rows expected = run(*alone.plan, nullptr, {}).rows;
    for (const Outcome& outcome : run_ranks(*shared.plan, seed, shape.pause_us)) {
      ASSERT_EQ(outcome.rows, expected);
      for_others += outcome.for_others;
    }
  }
  EXPECT_GT(for_others, 0) << "no rank has ever made a group for another";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RanksHelp, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace sluice::engine
