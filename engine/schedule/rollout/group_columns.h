#pragma once

#include "engine/contract/columns/micro_batch.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// The group has every column that node `writer` promises, with as many entries as its layout says: of what the graph needs,
/// nothing may be missing, since a reader would find an empty column. Throws UserError for what is against the contract.
void check_columns(const RunState& state, const Group& group, int writer);

}  // namespace sluice::engine
