#pragma once

#include <string>

#include "base/json/json.h"
#include "cli/run_folder/recorded_pipeline.h"

namespace sluice::cli {

// What a model card tells of the metrics of a run, as tables of Markdown; empty where there is nothing to tell. `series` is
// RunSeries::now() of the run. Only the first `iterations` of them count: a run may have gone on after the checkpoint.

/// First, last and best value of the metrics that tell how a run does, and their course.
std::string curve_table(const Json& series, int64_t iterations);

/// What the paths beside the main one have measured: of each the first, the last and the best value, and of which weights.
std::string evaluation_table(const Json& series, const RecordedPipeline& pipeline, int64_t iterations);

}  // namespace sluice::cli
