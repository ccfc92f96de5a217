#pragma once

#include <memory>

#include "engine/contract/node.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What stands for a node on a rank that does not have it (Plan::has). On a rank that trains iterations go through that of the
/// rollout, whose groups others make; a rank that only samples has those of all other nodes, and nothing goes through them. Owned
/// by the workload, and used as any node is. It is given no work (InternalError), and keeps and records nothing.
std::unique_ptr<NodeBase> absent_node(const Plan& plan, int node);

}  // namespace sluice::engine
