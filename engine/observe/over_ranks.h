#pragma once

#include <string>
#include <vector>

#include "engine/contract/world/metrics.h"

/// What each rank measures of itself in an iteration, such as seconds and resident memory, as metrics of the whole run.
///
/// What a rank has none of is NaN there, and counts for nothing; where no rank has any there is no such metric.
///
/// NAME is one number, whatever the number of ranks: of seconds (time/) the mean, of bytes and tokens the most that a rank has.
/// On several ranks two more stand after it, so that there are minimum, mean and maximum: NAME/min and NAME/max of seconds,
/// NAME/min and NAME/mean of anything else. Values; nothing here fails.
namespace sluice::engine::metrics {

/// The names of one that is measured, in the order of metrics.jsonl.
std::vector<std::string> names_over_ranks(const std::string& name, int ranks);

/// What this rank adds to Reductions::combine(). `of_run`: what is the same on all ranks that have it, so NAME is all there is
/// of it.
Contribution contribution_of(const MetricRow& measured, const MetricRow& of_run = {});

/// Of what all ranks have added.
MetricRow row_over_ranks(const Contribution& of_all, int ranks);

}  // namespace sluice::engine::metrics
