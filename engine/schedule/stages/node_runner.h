#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/stages/group_filter.h"
#include "engine/schedule/stages/rank_exchange.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// Drives one ordinary node through the packets that reach it: columns in and out, barriers and their steps, release of columns
/// and credit. What it drops as a filter, GroupFilter counts; what all ranks do together, RankExchange does. Used by the node's
/// executor only.
class NodeRunner {
 public:
  /// `last`: nothing else leaves on account of the packet at hand.
  using PassOn = std::function<void(const Packet&, bool last)>;

  /// `models`: all of the run, by name.
  NodeRunner(RunState& state, int node, Workload::Part part, const Workload::Models& models);

  /// Handles one packet, which it may take over, and passes on what leaves the node; nothing is counted any more after the first
  /// packet was passed on. Failures go to the run's failure slot, and nothing leaves then. The executor has begun to work on the
  /// node (Activity::begin); this ends it.
  ///
  /// False: the node waits for what other ranks add. The packet is to be brought again, before any other, once `go_on` is called,
  /// which happens on some thread, maybe before this returns.
  bool run(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on);

  int node() const { return host_.index(); }
  int executor() const { return executor_; }

  /// It may have to wait for other ranks at the end of an iteration.
  bool adds_over_ranks() const { return ranks_.adds(); }

  /// What must have been reached before the node may work on an iteration, so that everybody sees exactly the weights that the
  /// sequential program would show: a reader of live weights waits for the step of the iteration before, a trainer for the
  /// publication of it, and a publisher until no other path samples from the version whose memory it takes.
  struct Prerequisite {
    Milestone* milestone = nullptr;
    int64_t ahead = 0;        // the count that is waited for, less the iteration
    bool at_the_end = false;  // its micro-batches may come one iteration earlier: what it waits for concerns the end alone

    auto operator<=>(const Prerequisite&) const = default;

    int64_t count_for(const Packet& packet) const {
      return packet.iteration.index + ahead - (at_the_end && packet.batch != nullptr ? 1 : 0);
    }
  };
  const std::vector<Prerequisite>& prerequisites() const { return prerequisites_; }

 private:
  bool is_barrier() const { return plan_.needs.scope == Scope::kIteration; }
  bool is_dropped(const Packet& packet) const { return state_.stopping() || state_.cutoff.drops(packet.iteration.index); }

  void fail(const Packet& packet);
  void fail_unless_dropped(const Packet& packet);
  void expect(const Packet& packet);
  bool handle(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on);
  bool end_iteration(Packet& packet, const PassOn& pass_on, const std::function<void()>& go_on);
  bool go_through_steps(const Iteration& iteration, const std::function<void()>& go_on);
  void work_at_the_end(const Iteration& iteration);
  void hold(Packet& packet);
  void process_one(Packet& packet, const PassOn& pass_on);
  void skip_empty(Packet& packet, const PassOn& pass_on);
  void open_held();
  int64_t close_held();
  void pass_over(const Packet& packet, const PassOn& pass_on);
  void wait_for_samplers(const std::string& model);
  const ColumnData& written(const MicroBatch& batch, size_t index) const;
  void tell_observers(const MicroBatch& batch) const;
  void seal(MicroBatch& batch);
  void settle(MicroBatch& batch);
  std::shared_ptr<BatchState> filtered(const MicroBatch& batch);
  MicroBatch view(const Packet& packet) const { return {*packet.batch, state_.column_specs, plan_.reads, plan_.writes}; }
  WorkPlace place(const Packet& packet) const;

  RunState& state_;
  StageHost host_;
  Node& node_;
  const PlanNode& plan_;
  const int index_;
  const int executor_;
  PathState& path_;
  RankExchange ranks_;
  std::optional<GroupFilter> filter_;  // of a node that drops groups
  std::vector<Prerequisite> prerequisites_;
  int64_t next_ = 0;               // sequence number of the packet that is due
  std::vector<Packet> held_;       // a barrier's micro-batches of this iteration, empty ones among them
  std::vector<MicroBatch> views_;  // of those that are not empty, from its first step on

  // Of the end of an iteration that is under way.
  bool ending_ = false;
  enum class Phase { kAdd, kWork, kBring };
  int64_t step_ = 0;           // of a barrier
  Phase phase_ = Phase::kAdd;  // of this step, that comes next
  int64_t held_tokens_ = 0;
};

}  // namespace sluice::engine
