#pragma once

#include <cstdint>
#include <span>

#include "models/config/config.h"
#include "models/layers/feed_forward/routed_rows.h"
#include "models/layers/packed_linear.h"
#include "models/layers/step_scratch.h"

namespace sluice::models {

/// What the experts of a mixture add in a step of generation, where ranks that sample together have whole experts
/// (ColumnShare::shares_experts()): rows of tokens go to the owners of their experts, and what these make of them comes to the
/// ranks that have columns, ragged as it is. Those add it in the order of the experts, so every number is that of a rank which
/// has all.
///
/// Ranks with columns have the rows of all tokens and route all of them alike. The others are told how many rows each of their
/// experts has, and are sent those. (Dispatch and combination of Lepikhin et al. 2020, "GShard", section 3.2, without a
/// capacity.)
///
/// `rows.out` gets the columns that are here. Not the shared expert, whose columns are shared out. Waits and ends as the exchange
/// does.
void add_shared_out_experts(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                            const RoutedRows& routed, StepScratch& scratch);

/// Likewise of a rank without columns, of which `rows` has the number of tokens alone.
void assist_with_experts(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                         StepScratch& scratch);

}  // namespace sluice::models
