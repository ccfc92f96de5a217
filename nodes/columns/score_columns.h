#pragma once

#include <span>
#include <string>

#include "engine/contract/micro_batch.h"

namespace sluice::nodes {

/// A column of scores, one a sample, by its name.
engine::ColumnSpec score_column(const std::string& name);

/// Its entries [S]. Throws UserError naming column, group and sample where one is not finite: no sum or order would mean
/// anything.
std::span<const float> finite_scores(const engine::MicroBatch& batch, const std::string& name);

}  // namespace sluice::nodes
