#pragma once

#include <span>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

/// Declares what sample_rewards() and action_rewards() read: token_rewards where some node before writes them, else score.
/// Between a scorer and an advantage, token_rewards are there because the pipeline put them there: they have the score in them,
/// and the KL penalty.
template <class P>
void describe_rewards(engine::Contract<P>& c) {
  c.reads_first_of(columns::kTokenRewards, columns::kScore);
  c.reads_if_written(columns::kMask);
}

/// A column's entries [A]. Throws UserError that names column, group, sample and action where one that the mask keeps is not
/// finite.
std::span<const float> kept_entries(const engine::MicroBatch& batch, const ActionMask& mask, const engine::Column<float>& column);

/// Likewise step_rewards [A]: NaN where no step ends.
std::span<const float> kept_step_rewards(const engine::MicroBatch& batch, const ActionMask& mask);

// What follows throws likewise.

/// Of each sample [S]: the sum of its token_rewards that the mask keeps, or its score.
std::vector<double> sample_rewards(const engine::MicroBatch& batch, const ActionMask& mask);

/// Of each action [A]: its token reward, or the score of its sample on the last action that the mask keeps.
std::vector<double> action_rewards(const engine::MicroBatch& batch, const ActionMask& mask);

}  // namespace sluice::nodes
