#pragma once

#include <cstddef>
#include <filesystem>

#include "base/json.h"
#include "engine/contract/spec.h"

namespace sluice::cli {

/// Samples that `write_jsonl` nodes of the run have written, `most` at most: half of them the last, half from the whole run.
///   [{"iteration", "group", "sample", other fields...}]
/// Long texts are cut. Where tokens and their advantages or log-probabilities were written, "pieces" is what was sampled, token
/// by token: [[text, number], ...], and "pieces_are" tells which of the two. Lists are left out else. `spec`: the pipeline of
/// the run. Throws UserError for a file that holds no samples.
Json report_samples(const std::filesystem::path& run_folder, const engine::PipelineSpec& spec, size_t most);

}  // namespace sluice::cli
