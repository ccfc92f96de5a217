#pragma once

#include <filesystem>

#include "base/json.h"

namespace sluice::cli {

/// The metrics of a run:
///   {"reward/score_mean": {"x": [iteration, ...], "y": [number, ...]}, ...}
/// Reads metrics.jsonl of a run, which may be writing it. Throws UserError naming file and line for what is no metrics.
Json metric_series(const std::filesystem::path& path);

/// Likewise, thinned out so that a page can hold them: each stretch of iterations keeps its lowest and its highest value, so that
/// a spike stays one.
Json report_series(const std::filesystem::path& path);

}  // namespace sluice::cli
