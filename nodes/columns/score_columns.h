#pragma once

#include <functional>
#include <span>
#include <string>

#include "engine/contract/columns/micro_batch.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

/// The largest number, either way, that a setting may make a score of: scores are float32, which ends at 3.4e38.
constexpr double kLargestScore = 1e38;

/// A column of scores, one a sample, by its name.
engine::ColumnSpec score_column(const std::string& name);

/// Which one it is: "sample 1 of group 7". Its place is that in the micro-batch.
std::string name_of_sample(const engine::MicroBatch& batch, size_t sample);

/// Throws UserError unless `number`, an entry of column `name` for `whom`, is finite: no sum or order would mean anything.
void require_finite_entry(float number, const std::string& name, const std::function<std::string()>& whom);

/// Its entries [S]. Throws UserError naming column, group and sample where one is not finite, also of a sample that the mask
/// leaves out.
std::span<const float> finite_scores(const engine::MicroBatch& batch, const std::string& name);

/// Likewise, but those of samples that do not count (ActionMask::counts) may be anything, also NaN.
std::span<const float> scores_that_count(const engine::MicroBatch& batch, const std::string& name = columns::kScore.name);

/// Whether a score, or a mean of scores, is `bound` at least, or at most. As float32, which scores are: one that was written as
/// 0.7 reaches a bound of 0.7.
inline bool is_at_least(double score, double bound) { return static_cast<float>(score) >= static_cast<float>(bound); }
inline bool is_at_most(double score, double bound) { return static_cast<float>(score) <= static_cast<float>(bound); }

}  // namespace sluice::nodes
