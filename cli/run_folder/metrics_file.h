#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "cli/run_folder/growing_lines.h"

namespace sluice::cli {

using TakeMetric = std::function<void(int64_t iteration, const std::string& name, double value)>;

/// Calls `take` for every number of these lines of metrics.jsonl from `begin` on, in the order of the file. For each line that is
/// no metrics `damage` gets a problem that names file and line. `begin` is after these lines then.
void take_metrics(const GrowingLines& lines, size_t& begin, const TakeMetric& take, Problems& damage);

}  // namespace sluice::cli
