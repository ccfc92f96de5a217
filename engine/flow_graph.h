#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/executor.h"
#include "engine/node_runner.h"

namespace sluice::engine {

/// The oneTBB flow graph of a plan: one async_node for each ordinary node, which hands packets to the node's executor, and in front of
/// a node with several inputs a join that waits until a packet has come from all of them. A node's packets are handed over
/// once its prerequisites have reached their iteration. Packets keep their order on every edge.
class FlowGraph {
 public:
  /// `runners` by index of Plan::nodes (null for source and rollout); `executors` by index of Plan::executors. All outlive the graph.
  FlowGraph(const Plan& plan, const std::vector<std::unique_ptr<NodeRunner>>& runners,
            const std::vector<std::unique_ptr<Executor>>& executors);
  ~FlowGraph();

  /// Puts a packet in at the head. Thread-safe, does not block.
  void emit(Packet packet);

  /// The graph counts as busy between these two.
  void reserve();
  void release();

  /// Waits for: every reservation to be released and every packet to have left. Ends by itself when they are.
  void wait();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
