#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/run_state.h"

namespace sluice::engine {

/// Drives one ordinary node through the packets that reach it: boundaries of iterations, columns in and out, barriers, filters,
/// release of columns and credit. Used by the node's executor only.
class NodeRunner {
 public:
  /// `last`: nothing else leaves on account of the packet at hand.
  using PassOn = std::function<void(const Packet&, bool last)>;

  NodeRunner(RunState& state, int node, std::unique_ptr<Node> implementation, std::unique_ptr<MetricsRecorder> metrics);

  /// Handles one packet, which it may take over, and passes on what leaves the node; nothing is counted any more after the first
  /// packet was passed on. Failures go to the run's failure slot, and nothing leaves then. The executor has begun to work on the
  /// node (Activity::begin); this ends it.
  void run(Packet& packet, const PassOn& pass_on);

  int node() const { return index_; }
  int executor() const { return executor_; }

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
  bool is_filter() const { return plan_.needs.drops_groups; }

  void expect(const Packet& packet);
  void begin(const Iteration& iteration);
  void end_iteration(Packet& packet, const PassOn& pass_on);
  void hold(Packet& packet);
  void process_one(Packet& packet, const PassOn& pass_on);
  int64_t process_held();
  void end(const Iteration& iteration);
  void pass_over(const Packet& packet, const PassOn& pass_on);
  void save(const Iteration& iteration);
  void announce_end(const Iteration& iteration, MetricRow row);
  void wait_for_samplers(const std::string& model);
  const ColumnData& written(const MicroBatch& batch, size_t index) const;
  void tell_observers(const MicroBatch& batch) const;
  void seal(MicroBatch& batch);
  void settle(MicroBatch& batch);
  std::shared_ptr<BatchState> filtered(const MicroBatch& batch);
  void record_filter();
  MicroBatch view(const Packet& packet) const { return {*packet.batch, state_.slots, plan_.reads, plan_.writes}; }
  WorkPlace place(const Packet& packet) const;

  RunState& state_;
  const int index_;
  const PlanNode& plan_;
  PathState& path_;
  const std::unique_ptr<MetricsRecorder> metrics_;
  const std::unique_ptr<Node> node_;  // declared after what it holds on to
  int executor_ = 0;
  std::vector<std::string> updated_models_;
  std::vector<std::string> published_models_;
  std::vector<Prerequisite> prerequisites_;
  int64_t next_ = 0;          // sequence number of the packet that is due
  int64_t begun_ = -1;        // the iteration that the node is in
  std::vector<Packet> held_;  // a barrier's micro-batches of this iteration, empty ones among them

  // Of a filter, in this iteration.
  int64_t quota_ = 0;  // groups that are wanted; 0: all that pass
  int64_t kept_ = 0, dropped_ = 0, surplus_ = 0;
};

/// Index of an executor in the plan.
int executor_index(const Plan& plan, const std::string& name);

}  // namespace sluice::engine
