#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nodes/rollout/generate.h"

namespace sluice::nodes {

// What follows from the parameters of `generate`, for its contract and for itself.

/// Strings that end a turn: those that are written, and those of the environment.
std::vector<std::string> all_turn_ends(const GenerateParams& params);

/// Tokens for which a sample takes credit at once, on demand: a block of the KV cache.
constexpr int64_t kCreditRoom = models::GenerationLimits{}.kv_block_size;

/// The most tokens of a step.
int64_t step_tokens(const GenerateParams& params);

}  // namespace sluice::nodes
