#include "tests/engine/ranks/ranks_in_one_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "engine/observe/engine_metrics.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/ranks/returning_ranks.h"
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

// The runs of all ranks, while they are, and what has become of ranks that may be lost.
class Runs {
 public:
  explicit Runs(size_t ranks) : runs_(ranks), is_lost_(ranks), is_over_(ranks), others_know_(ranks) {}

  void add(size_t rank, engine::Run& run) {
    const std::lock_guard lock(mutex_);
    runs_[rank] = &run;
    if (is_lost_[rank]) run.fail(std::make_exception_ptr(UserError("this rank is lost")));
    for (const Change& change : changes_)
      if (static_cast<size_t>(change.rank) != rank) tell(run, change);
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

  // False: it was over before.
  bool lose(int rank) {
    const auto index = static_cast<size_t>(rank);
    const std::lock_guard lock(mutex_);
    if (is_over_[index]) return false;
    is_lost_[index] = true;
    if (runs_[index] != nullptr) runs_[index]->fail(std::make_exception_ptr(UserError("this rank is lost")));
    return true;
  }

  // As ranks learn of each other's failures.
  void fail_others(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    for (engine::Run* const run : runs_)
      if (run != nullptr) run->fail(error);
  }

  void wait_until_others_know(size_t rank) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return others_know_[rank]; });
  }

  void tell_of_loss(int rank, int64_t pause_us) {
    tell_all({.rank = rank, .incarnation = 0}, pause_us);
    const std::lock_guard lock(mutex_);
    others_know_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }

  void take_back(int rank, int64_t incarnation, int64_t pause_us) {
    {
      const std::lock_guard lock(mutex_);
      is_lost_[static_cast<size_t>(rank)] = is_over_[static_cast<size_t>(rank)] = false;
    }
    tell_all({.rank = rank, .incarnation = incarnation}, pause_us);
  }

 private:
  struct Change {
    int rank;
    int64_t incarnation;  // that came back; 0: it was lost
  };

  static void tell(engine::Run& run, const Change& change) {
    if (change.incarnation > 0)
      run.take_back(change.rank, change.incarnation);
    else
      run.lose(change.rank, "it is lost");
  }

  void tell_all(const Change& change, int64_t pause_us) {
    {
      const std::lock_guard lock(mutex_);
      changes_.push_back(change);
    }
    for (size_t rank = 0; rank < runs_.size(); ++rank) {
      std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
      const std::lock_guard lock(mutex_);
      if (runs_[rank] != nullptr && static_cast<int>(rank) != change.rank) tell(*runs_[rank], change);
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<engine::Run*> runs_;
  std::vector<bool> is_lost_, is_over_, others_know_;
  std::vector<Change> changes_;
};

// All ranks of a plan, and what connects them.
class Ranks {
 public:
  Ranks(const Plan& plan, uint64_t seed, int64_t pause_us)
      : plan_(plan),
        pause_us_(pause_us),
        mail_(plan.ranks, seed, pause_us),
        parcels_(plan.ranks, seed, pause_us),
        publications_(plan.ranks, seed, pause_us),
        runs_(static_cast<size_t>(plan.ranks)),
        outcomes_(static_cast<size_t>(plan.ranks)) {}

  std::vector<RankOutcome> run(const std::vector<LostRank>& lost) {
    all_are_lost_ = plan_.expendable().any() && std::ssize(lost) == plan_.expendable().count;
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        const auto found = std::ranges::find(lost, rank, &LostRank::rank);
        const auto back = found == lost.end() ? std::optional<int64_t>() : found->back_after_us;
        threads.emplace_back([this, rank, back] {
          if (execute(rank, {}) == Became::kLost && back) come_back(rank, *back);
        });
      }
      for (const LostRank& one : lost) threads.emplace_back([this, one] { lose(one); });
    }
    mail_.close();
    parcels_.close();
    EXPECT_TRUE(mail_.failures().empty());
    EXPECT_TRUE(parcels_.failures().empty());
    return std::move(outcomes_);
  }

 private:
  enum class Became { kDone, kLost };

  Became execute(int rank, std::function<int64_t()> comes_in) {
    const auto index = static_cast<size_t>(rank);
    const bool came_in = comes_in != nullptr;
    RankOutcome outcome;
    MailedReductions& reductions = reductions_of(rank);
    engine::Run run(plan_, {.on_iteration = [&](const IterationReport& report) { note_report(report, outcome); },
                            .reductions = &reductions,
                            .links = RankLinks{mail_.rank(rank), parcels_.rank(rank),
                                               plan_.has_roles() ? &publications_.rank(rank) : nullptr},
                            .comes_in = std::move(comes_in)});
    runs_.add(index, run);
    const RunSummary summary = run.execute();
    runs_.remove(index);
    if (runs_.is_lost(index)) return Became::kLost;
    if (came_in) outcome = {};
    outcome.came_in = came_in;
    outcome.was_cut_short = all_are_lost_ && summary.end == RunEnd::kCutShort;
    outcome.lacked_samplers = all_are_lost_ && summary.end == RunEnd::kFailed &&
                              failure_of(summary).find("rank is left that samples") != std::string::npos;
    if (outcome.lacked_samplers) runs_.fail_others(summary.error);
    if (!outcome.was_cut_short && !outcome.lacked_samplers) {
      EXPECT_EQ(summary.end, RunEnd::kDone) << failure_of(summary);
    }
    outcomes_[index] = std::move(outcome);
    return Became::kDone;
  }

  // Others may call it when its run is over.
  MailedReductions& reductions_of(int rank) {
    auto made = std::make_unique<MailedReductions>(mail_.rank(rank), MailedReductions::Gradients(), plan_.owners());
    const std::lock_guard lock(mutex_);
    return *reductions_.emplace_back(std::move(made));
  }

  void lose(const LostRank& one) {
    std::this_thread::sleep_for(std::chrono::microseconds(one.after_us));
    if (!runs_.lose(one.rank)) return;
    mail_.lose(one.rank);
    parcels_.lose(one.rank);
    publications_.lose(one.rank);
    runs_.tell_of_loss(one.rank, pause_us_);
  }

  void come_back(int rank, int64_t after_us) {
    runs_.wait_until_others_know(static_cast<size_t>(rank));
    std::this_thread::sleep_for(std::chrono::microseconds(after_us));
    const int64_t incarnation = mail_.take_back(rank);
    parcels_.take_back(rank);
    runs_.take_back(rank, incarnation, pause_us_);
    try {
      execute(rank, [this, rank, incarnation] { return come_in(rank, incarnation); });
    } catch (const UserError&) {
      // The run ends before.
    }
  }

  int64_t come_in(int rank, int64_t incarnation) {
    const auto answer = std::make_shared<std::promise<std::optional<int64_t>>>();
    ask_to_come_in(mail_.rank(rank), incarnation, [answer](std::optional<int64_t> version) { answer->set_value(version); });
    const std::optional<int64_t> version = answer->get_future().get();
    if (!version) throw UserError("the run ends before");
    return *version;
  }

  const Plan& plan_;
  const int64_t pause_us_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<MailedReductions>> reductions_;  // guarded by it; outlives the mail
  MailInOneProcess mail_;
  ParcelsInOneProcess parcels_;
  PublicationsInOneProcess publications_;
  Runs runs_;
  bool all_are_lost_ = false;
  std::vector<RankOutcome> outcomes_;
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
  return Ranks(plan, seed, pause_us).run(lost);
}

}  // namespace sluice::engine::testing
