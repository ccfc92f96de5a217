#pragma once

#include "engine/contract/columns/column.h"

namespace sluice::nodes::columns {

/// The reward of a step of the response (process supervision), on the action with which the step ends; NaN where none does.
inline constexpr engine::Column<float> kStepRewards{"step_rewards", engine::Extent::kAction};

}  // namespace sluice::nodes::columns
