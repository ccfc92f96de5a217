#pragma once

#include <memory>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::engine {

/// One node alone, on columns given by hand: what `rlhf-run try` and the tests of nodes use. Single-threaded.
struct NodeTrial {
  const NodeType* type = nullptr;
  std::shared_ptr<const void> params;
  NodeResources resources;               // models, seed, run_folder as the node needs; metrics and totals may be left null
  std::vector<Group> groups;             // the input: layouts and columns
  std::vector<size_t> groups_per_batch;  // how they are packed into micro-batches; empty: all in one
};

struct NodeOutcome {
  std::vector<Group::NamedColumn> columns;  // what the node wrote, over all groups
  MetricRow metrics;
  std::vector<int64_t> dropped_groups;  // by a filter; indices into NodeTrial::groups
};

/// Runs begin_iteration, process (or process_iteration, by the contract's scope) and end_iteration on iteration 0.
/// Throws UserError when a column that the node reads is missing or has another type, when the node does not do what its contract
/// says, as in a run, and in place of what its code throws that is no error of ours.
NodeOutcome try_node(NodeTrial trial);

}  // namespace sluice::engine
