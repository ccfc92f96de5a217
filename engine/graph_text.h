#pragma once

#include <string>

#include "engine/plan.h"

namespace sluice::engine {

/// The plan as a graph: nodes with type, models and executor; edges with the columns alive on them; barriers marked; the way of
/// new weights from their publisher to the rollout dashed.

/// For Graphviz.
std::string dot_text(const Plan& plan);

/// For Markdown that renders Mermaid.
std::string mermaid_text(const Plan& plan);

}  // namespace sluice::engine
