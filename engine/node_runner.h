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

  /// The node trains a model that another node publishes: it must not step again before that has happened.
  bool waits_for_publication() const { return waits_for_publication_; }

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
  bool waits_for_publication_ = false;
  int64_t begun_ = -1;                // the iteration that the node is in
  std::vector<Packet> held_;          // a barrier's micro-batches of this iteration
};

/// Some node of the plan makes `model`'s live weights the next published version.
bool is_published(const Plan& plan, const std::string& model);

/// How many ordinary nodes read each column, by index of Plan::columns.
std::vector<int> ordinary_readers(const Plan& plan);

/// Index of an executor in the plan.
int executor_index(const Plan& plan, const std::string& name);

}  // namespace sluice::engine
