#pragma once

#include <filesystem>

#include "base/json.h"

namespace sluice::cli {

/// The metrics of a run, thinned out so that a page can hold them:
///   {"reward/score_mean": {"x": [iteration, ...], "y": [number, ...]}, ...}
/// Each stretch of iterations keeps its lowest and its highest value, so that a spike stays one. Reads metrics.jsonl of a
/// run, which may be writing it. Throws UserError naming file and line for what is no metrics.
Json report_series(const std::filesystem::path& path);

}  // namespace sluice::cli
