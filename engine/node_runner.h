#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/node.h"
#include "engine/run_state.h"

namespace sluice::engine {

/// Drives one ordinary node through the packets that reach it: boundaries of iterations, columns in and out, barriers, release of columns
/// and credit. Used by the node's executor thread only.
class NodeRunner {
 public:
  NodeRunner(RunState& state, int node, std::unique_ptr<Node> implementation, std::unique_ptr<MetricsRecorder> metrics, Reducer& reducer);

  /// Handles one packet and passes on what leaves the node. Failures go to the run's failure slot, and nothing leaves then.
  void run(Packet packet, const std::function<void(Packet)>& pass_on);

  int executor() const { return executor_; }

  /// What must have reached iteration i before the node may work on iteration i, so that it sees exactly the weights that the sequential
  /// program would show it: a reader of live weights waits for the step of the iteration before, a trainer for the publication of it.
  const std::vector<Milestone*>& prerequisites() const { return prerequisites_; }

 private:
  void begin(const Iteration& iteration);
  void process_one(const Packet& packet);
  void process_held(const Iteration& iteration);
  void end(const Iteration& iteration);
  void settle(MicroBatch& batch);
  MicroBatch view(const Packet& packet) const { return {packet.batch, state_.slots, plan_.reads, plan_.writes}; }
  WorkPlace place(const Packet& packet) const;

  RunState& state_;
  const int index_;
  const PlanNode& plan_;
  const std::unique_ptr<MetricsRecorder> metrics_;
  const std::unique_ptr<Node> node_;  // declared after what it holds on to
  Reducer& reducer_;
  int executor_ = 0;
  WorkClass class_ = WorkClass::kOther;
  std::vector<int> readers_;          // of each column that the node writes: how many nodes read it
  std::vector<std::string> updated_models_;
  bool publishes_ = false;
  std::vector<Milestone*> prerequisites_;
  int64_t begun_ = -1;                // the iteration that the node is in
  std::vector<Packet> held_;          // a barrier's micro-batches of this iteration
};

/// How many ordinary nodes read each column, by index of Plan::columns.
std::vector<int> ordinary_readers(const Plan& plan);

/// Index of an executor in the plan.
int executor_index(const Plan& plan, const std::string& name);

}  // namespace sluice::engine
