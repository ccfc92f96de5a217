#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/schedule/stages/executor.h"
#include "engine/schedule/stages/node_runner.h"

namespace sluice::engine {

/// The oneTBB flow graph of a plan: one async_node for each ordinary node, which hands packets to the node's executor, and in
/// front of a node with several inputs a join that waits until a packet has come from all of them. A node's packets are handed
/// over once its prerequisites have reached their iteration. Packets keep their order on every edge. All bodies are a few
/// instructions and run at once on the thread that sends, so a simulation that sends from one thread is exact.
class FlowGraph {
 public:
  /// `runners` by index of Plan::nodes (null for source and rollout); `executors` by index of Plan::executors. All outlive the
  /// graph. A packet counts as pending from when it is sent to a node until the node has passed on what leaves.
  FlowGraph(RunState& state, const std::vector<std::unique_ptr<NodeRunner>>& runners, const std::vector<Executor*>& executors);
  ~FlowGraph();

  /// Puts a packet in at the head of a path (index of Plan::paths). Thread-safe, does not block.
  void emit(int path, Packet packet);

  /// A packet has come that may only be worked on with weights that are not there yet.
  bool waits_for_weights(int node) const;

  /// What keeps a node from its next packet, as far as the graph knows: "micro-batches of 'values'", "version 3 ..."; empty:
  /// nothing.
  std::string waits_for(int node) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
