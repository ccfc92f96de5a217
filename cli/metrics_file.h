#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/growing_lines.h"

namespace sluice::cli {

using TakeMetric = std::function<void(int64_t iteration, const std::string& name, double value)>;

/// Calls `take` for every number of these lines of metrics.jsonl from `begin` on, in the order of the file. Throws UserError naming
/// file and line for what is no metrics; `begin` is behind the lines that were taken as a whole.
void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take);

}  // namespace sluice::cli
