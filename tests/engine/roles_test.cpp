#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/ranks/publications_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"

// Ranks that train and ranks that sample for them: several worlds in one process, connected by mail, parcels and versions that come
// in any order.
namespace sluice::engine {
namespace {

using testing::MailInOneProcess;
using testing::ParcelsInOneProcess;
using testing::PublicationsInOneProcess;

// Bits, because a NaN or the sign of a zero would otherwise be missed.
using Rows = std::vector<std::vector<std::pair<std::string, uint64_t>>>;

std::string text_of(const RunSummary& summary) {
  if (!summary.error) return {};
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

Rows rows_of_run(const Plan& plan, Reductions* reductions, std::optional<RankLinks> links) {
  Rows rows;
  const auto note = [&](const IterationReport& report) {
    auto& row = rows.emplace_back();
    for (const auto& [name, value] : report.metrics)
      if (!depends_on_timing(name)) row.emplace_back(name, std::bit_cast<uint64_t>(value));
  };
  engine::Run run(plan, {.on_iteration = note, .reductions = reductions, .links = links});
  const RunSummary summary = run.execute();
  EXPECT_EQ(summary.end, RunEnd::kDone) << text_of(summary);
  return rows;
}

std::vector<Rows> rows_of_ranks(const Plan& plan, uint64_t seed, int64_t pause_us) {
  MailInOneProcess mail(plan.ranks, seed, pause_us);
  ParcelsInOneProcess parcels(plan.ranks, seed, pause_us);
  PublicationsInOneProcess publications(plan.ranks, seed, pause_us);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::vector<Rows> rows(static_cast<size_t>(plan.ranks));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const int index = static_cast<int>(rank);
        rows[rank] =
            rows_of_run(plan, ranks[rank].get(), RankLinks{mail.rank(index), parcels.rank(index), &publications.rank(index)});
      });
    }
  }
  mail.close();
  parcels.close();
  EXPECT_TRUE(mail.failures().empty());
  EXPECT_TRUE(parcels.failures().empty());
  return rows;
}

// 400 pipelines in all; fewer where a sanitizer makes each many times slower.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kPipelinesATest = 10;
#else
constexpr uint64_t kPipelinesATest = 100;
#endif

class Roles : public ::testing::TestWithParam<uint64_t> {
 protected:
  Roles() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  Registry registry_;
};

// With the least budgets, whoever makes the groups and however long the weights take: the lines are those of one process, bit for
// bit.
TEST_P(Roles, GiveTheMetricsOfOneProcess) {
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    const CheckResult alone = check(toy::ranks_pipeline(shape, seed), registry_, 1);
    ASSERT_TRUE(alone.plan) << render(alone.problems);
    const Rows expected = rows_of_run(*alone.plan, nullptr, {});
    shape.training_ranks = 1 + static_cast<int>(seed % 3);
    shape.sampling_ranks = 1 + static_cast<int>(seed / 3 % 3);
    shape.budget = toy::least_budget(shape, seed, registry_, 0);
    shape.sampling_budget = shape.samples * shape.worst * (1 + static_cast<int64_t>(seed % 2));
    const CheckResult apart = check(toy::ranks_pipeline(shape, seed), registry_);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    ASSERT_EQ(apart.plan->ranks, shape.training_ranks + shape.sampling_ranks);
    for (const Rows& rows : rows_of_ranks(*apart.plan, seed, shape.pause_us)) ASSERT_EQ(rows, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Roles, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace sluice::engine
