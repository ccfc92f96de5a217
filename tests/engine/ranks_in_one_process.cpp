#include "tests/engine/ranks_in_one_process.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
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

// The runs of all ranks, while they are.
class Runs {
 public:
  explicit Runs(size_t ranks) : runs_(ranks), is_lost_(ranks), is_over_(ranks) {}

  void add(size_t rank, engine::Run& run) {
    const std::lock_guard lock(mutex_);
    runs_[rank] = &run;
    if (is_lost_[rank]) run.fail(std::make_exception_ptr(UserError("this rank is lost")));
    for (const int lost : told_)
      if (static_cast<size_t>(lost) != rank) run.lose(lost, "it is lost");
  }

  void remove(size_t rank) {
    const std::lock_guard lock(mutex_);
    runs_[rank] = nullptr;
    is_over_[rank] = true;
  }

  bool is_lost(size_t rank) {
    const std::lock_guard lock(mutex_);
    return is_lost_[rank];
  }

  void lose(int rank) {
    const auto index = static_cast<size_t>(rank);
    const std::lock_guard lock(mutex_);
    if (is_over_[index]) return;
    is_lost_[index] = true;
    if (runs_[index] != nullptr) runs_[index]->fail(std::make_exception_ptr(UserError("this rank is lost")));
  }

  void tell(int lost, int64_t pause_us) {
    {
      const std::lock_guard lock(mutex_);
      told_.push_back(lost);
    }
    for (size_t rank = 0; rank < runs_.size(); ++rank) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      const std::lock_guard lock(mutex_);
      if (runs_[rank] != nullptr && static_cast<int>(rank) != lost) runs_[rank]->lose(lost, "it is lost");
    }
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<engine::Run*> runs_;
  std::vector<bool> is_lost_, is_over_;
  std::vector<int> told_;
};

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

std::vector<RankOutcome> run_ranks(const Plan& plan, uint64_t seed, int64_t pause_us, const std::vector<LostRank>& lost) {
  MailInOneProcess mail(plan.ranks, seed, pause_us);
  ParcelsInOneProcess parcels(plan.ranks, seed, pause_us);
  PublicationsInOneProcess publications(plan.ranks, seed, pause_us);
  std::vector<std::unique_ptr<MailedReductions>> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    ranks.push_back(std::make_unique<MailedReductions>(mail.rank(rank), MailedReductions::Gradients(), plan.owners()));
  }
  std::vector<RankOutcome> outcomes(static_cast<size_t>(plan.ranks));
  Runs runs(outcomes.size());
  const auto execute = [&](size_t rank) {
    const int index = static_cast<int>(rank);
    RankOutcome outcome;
    engine::Run run(plan, {.on_iteration = [&](const IterationReport& report) { note_report(report, outcome); },
                           .reductions = ranks[rank].get(),
                           .links = RankLinks{mail.rank(index), parcels.rank(index),
                                              plan.roles.empty() ? nullptr : &publications.rank(index)}});
    runs.add(rank, run);
    const RunSummary summary = run.execute();
    runs.remove(rank);
    if (runs.is_lost(rank)) return;
    EXPECT_EQ(summary.end, RunEnd::kDone) << failure_of(summary);
    outcomes[rank] = std::move(outcome);
  };
  const auto lose = [&](const LostRank& one) {
    std::this_thread::sleep_for(std::chrono::microseconds(one.after_us));
    mail.lose(one.rank);
    parcels.lose(one.rank);
    runs.lose(one.rank);
    publications.lose(one.rank);
    runs.tell(one.rank, pause_us);
  };
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < outcomes.size(); ++rank) threads.emplace_back(execute, rank);
    for (const LostRank& one : lost) threads.emplace_back(lose, one);
  }
  mail.close();
  parcels.close();
  EXPECT_TRUE(mail.failures().empty());
  EXPECT_TRUE(parcels.failures().empty());
  return outcomes;
}

}  // namespace sluice::engine::testing
