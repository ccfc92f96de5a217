#include "tests/engine/ranks_in_one_process.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <thread>

#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/ranks/publications_in_one_process.h"
#include "tests/engine/tally_nodes.h"

namespace sluice::engine::testing {
namespace {

std::string failure_of(const RunSummary& summary) {
  if (!summary.error) return {};
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void note_report(const IterationReport& report, RankOutcome& outcome) {
  outcome.lines.push_back(report.metrics);
  auto& row = outcome.rows.emplace_back();
  for (const auto& [name, value] : report.metrics) {
    if (name == metrics::kGroupsForOthers) outcome.for_others += value;
    if (!depends_on_timing(name)) row.emplace_back(name, std::bit_cast<uint64_t>(value));
  }
}

}  // namespace

RankOutcome run_rank(const Plan& plan, Reductions* reductions, std::optional<RankLinks> links) {
  RankOutcome outcome;
  engine::Run run(plan, {.on_iteration = [&](const IterationReport& report) { note_report(report, outcome); },
                         .reductions = reductions,
                         .links = links});
  const RunSummary summary = run.execute();
  EXPECT_EQ(summary.end, RunEnd::kDone) << failure_of(summary);
  return outcome;
}

std::vector<RankOutcome> run_ranks(const Plan& plan, uint64_t seed, int64_t pause_us) {
  MailInOneProcess mail(plan.ranks, seed, pause_us);
  ParcelsInOneProcess parcels(plan.ranks, seed, pause_us);
  PublicationsInOneProcess publications(plan.ranks, seed, pause_us);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  std::vector<RankOutcome> outcomes(static_cast<size_t>(plan.ranks));
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const int index = static_cast<int>(rank);
        RankLinks links{mail.rank(index), parcels.rank(index), plan.roles.empty() ? nullptr : &publications.rank(index)};
        outcomes[rank] = run_rank(plan, ranks[rank].get(), links);
      });
    }
  }
  mail.close();
  parcels.close();
  EXPECT_TRUE(mail.failures().empty());
  EXPECT_TRUE(parcels.failures().empty());
  return outcomes;
}

}  // namespace sluice::engine::testing
