#pragma once

#include <string>
#include <vector>

#include "engine/contract/metrics.h"

/// What each rank measures of itself in an iteration, such as seconds and resident memory, as metrics of the whole run.
///
/// NAME is one number, whatever the number of ranks: of seconds (time/) the mean, of bytes and tokens the most that a rank has. On
/// several ranks two more stand behind it, so that there are minimum, mean and maximum: NAME/min and NAME/max of seconds, NAME/min
/// and NAME/mean of anything else. Values; nothing here fails.
namespace sluice::engine::metrics {

/// The names of one that is measured, in the order of metrics.jsonl.
std::vector<std::string> names_over_ranks(const std::string& name, int ranks);

/// What this rank adds to Reductions::combine().
Contribution contribution_of(const MetricRow& measured);

/// Of what all ranks have added.
MetricRow row_over_ranks(const Contribution& of_all, int ranks);

}  // namespace sluice::engine::metrics
