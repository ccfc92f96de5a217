#pragma once

#include <memory>

#include "engine/contract/node.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What stands for a node on a rank that does not have it (Plan::has). The iterations go through it, so that all ranks have the
/// same graph and meet at the same points; it is given no work (InternalError), and keeps and records nothing.
std::unique_ptr<NodeBase> absent_node(const Plan& plan, int node);

}  // namespace sluice::engine
