#pragma once

#include <cstddef>
#include <filesystem>

#include "base/json.h"

namespace sluice::cli {

/// All that a report tells of one run, as the script of the page reads it:
///   {"name", "folder", "state", "began", "ended", "seconds", "iterations", "iterations_done", "series": report_series(),
///    "samples": report_samples(), "memory": memory.json or null, "graph": report_graph(), "pipeline": the effective pipeline,
///    "notes": [{"severity", "text"}]}
/// Of a folder that was copied some files may be missing; metrics.jsonl must be there. Throws UserError naming what is no run.
Json report_of_run(const std::filesystem::path& folder, size_t most_samples);

}  // namespace sluice::cli
