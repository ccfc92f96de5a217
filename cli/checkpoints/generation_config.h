#pragma once

#include <filesystem>

#include "base/json/json.h"
#include "cli/run_folder/recorded_pipeline.h"

namespace sluice::cli {

/// generation_config.json of a language model in `folder`, so that others sample from it as the run did: where a text ends, which
/// ids begin and pad one, and temperature, top_k, top_p, min_p and repetition_penalty of the `generate` node that samples from
/// `model` to train it; of a scheduled temperature what the last iteration had. What the folder has already is kept where the run
/// says nothing of it. Throws UserError for files that are damaged.
Json generation_config(const std::filesystem::path& folder, const RecordedPipeline& pipeline, const std::string& model,
                       const engine::Registry& registry);

}  // namespace sluice::cli
