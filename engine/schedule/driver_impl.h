#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks/returning_ranks.h"
#include "engine/schedule/driver.h"
#include "engine/schedule/help/askers.h"
#include "engine/schedule/help/mutual_help.h"
#include "engine/schedule/help/samplers_there.h"
#include "engine/schedule/rollout/sampling_rank.h"
#include "engine/schedule/state/agreed_end.h"

namespace sluice::engine {

/// What a driver has. For the files that implement it alone: driver.cpp wires and drives, driver_status.cpp tells how it goes.
struct Driver::Impl {
  Impl(const Plan& plan, Parts parts);
  ~Impl() {
    agreed_end->forget();
    state.coming->forget();
    if (roll_call) roll_call->forget();
    if (help) help->forget();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::deque<PathState> make_paths(const Plan& plan, const ReplaceableParts& replaced);
  void open_gates();
  void watch_samplers(const std::optional<RankLinks>& links);
  Intake::Parts intake_parts(size_t path);
  void start_path(size_t path);
  void notify_intakes();
  GroupAsker::Events asker_events();
  bool samplers_may_be_lost() const { return state.plan.expendable().any(); }
  std::vector<int> samplers() const { return samplers_that_ask(state.world, asked_by_samplers(state.plan)); }
  Contribution own_contribution(int64_t iteration);
  MetricRow measured();
  void end_own(int64_t iteration);
  void add_own(const Reductions::Key& key, Contribution mine, const RollCall::Told& told);
  void report_own(const Reductions::Key& key, const Contribution& of_all);
  void close_iteration(IterationReport& report);
  void end_if_decided();
  void expect_early_ends();
  std::optional<std::string> why_cut_short() const;
  void expect_no_samplers(const std::string& because);
  void drop_behind(int64_t last);
  RunStatus::Node status_of(size_t node) const;
  std::string waits_for(size_t node) const;
  Idle idle_reason(const std::string* executor) const;

  Workload workload;
  const std::function<void(const IterationReport&)> on_iteration;
  const std::function<MetricRow()> measure;
  const std::function<std::string()> tell;
  const std::function<void(const std::string&)> hear;
  mutable std::mutex notify_mutex;
  std::vector<Executor*> intake_executors;    // empty: none takes news
  std::deque<PathState> paths;                // after what they call when credit returns, before all that hold credit
  const std::shared_ptr<RollCall> roll_call;  // of all ranks, with roles; else null
  RunState state;
  const int64_t begun;
  const std::optional<int64_t> first_version;
  std::optional<StopRule> stop_rule;  // used under the lock of the log
  std::vector<std::unique_ptr<NodeRunner>> runners;
  std::vector<Executor*> executors;              // empty before start()
  std::unique_ptr<FlowGraph> graph;              // null on a rank that only samples
  std::optional<SamplingRank> sampling;          // of such a rank
  std::vector<std::unique_ptr<PathHead>> heads;  // by index of Plan::paths, null where nothing is done; empty before start()
  int64_t last_end_ns = 0;                       // of an iteration on this rank
  std::atomic<int64_t> most_in_flight{0}, most_column_bytes{0};
  const std::shared_ptr<AgreedEnd> agreed_end;
  const std::unique_ptr<MutualHelp> help;           // null: this rank makes its own groups
  const std::shared_ptr<ReturningRanks> returning;  // of rank 0, where ranks that only sample may be lost; else null
  std::optional<SamplersThere> samplers_there;      // of ranks that train, likewise
};

}  // namespace sluice::engine
