#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "cli/growing_lines.h"

namespace sluice::cli {

using TakeMetric = std::function<void(int64_t iteration, const std::string& name, double value)>;
using TakeDamage = std::function<void(const UserError& error)>;

/// Calls `take` for every number of these lines of metrics.jsonl from `begin` on, in the order of the file, and `damaged` for each
/// line that is no metrics, with an error that names file and line. `begin` is behind the lines that were taken then.
void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take, const TakeDamage& damaged);

}  // namespace sluice::cli
