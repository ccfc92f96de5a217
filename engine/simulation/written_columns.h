#pragma once

#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/plan/plan.h"

// What simulated nodes write.
namespace sluice::engine {

/// Columns that the node writes.
std::vector<ColumnSpec> written_by(const Plan& plan, const PlanNode& node);

/// Zeros, or empty texts.
void write_zeros(Group& group, const ColumnSpec& spec);

}  // namespace sluice::engine
