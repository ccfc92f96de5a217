#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "nodes/models/model_text.h"
#include "nodes/rollout/generate_params.h"
#include "nodes/rollout/running_group.h"

namespace sluice::nodes {

/// The tokens of a sample that were sampled: all after a prompt of that many tokens but those that it was given.
std::vector<int64_t> sampled_tokens(const models::SampleResult& result, int64_t prompt);

/// The group with its samples as columns, all of whose responses have ended.
engine::Group completed(RunningGroup running, const GenerateParams& params, const ModelText& text);

}  // namespace sluice::nodes
