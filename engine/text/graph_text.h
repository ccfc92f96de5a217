#pragma once

#include <string>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// Which columns stand on an edge: those that the node at its end reads, or all that are alive there, also those that only pass
/// through.
enum class GraphColumns { kRead, kAll };

/// The plan as a graph: nodes with type, models and executor; edges with columns; barriers marked; the way of new weights from
/// their publisher to the rollout dashed. Roles are frames around their nodes, and what goes from rank to rank is thick, with its
/// bytes.

/// For Graphviz.
std::string dot_text(const Plan& plan, GraphColumns columns = GraphColumns::kRead);

/// For Markdown that renders Mermaid.
std::string mermaid_text(const Plan& plan, GraphColumns columns = GraphColumns::kRead);

}  // namespace sluice::engine
