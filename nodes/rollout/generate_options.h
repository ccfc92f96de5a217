#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "models/sample/generation.h"
#include "nodes/models/model_text.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/rollout/generate_params.h"
#include "nodes/rollout/turns.h"

// What follows from the parameters of `generate`: for its contract, and for the engine and the turns that it is made of.
namespace sluice::nodes {

/// Strings that end a turn: those that are written, and those of the environment.
std::vector<std::string> all_turn_ends(const GenerateParams& params);

/// Tokens for which a sample takes credit at once, on demand: a block of the KV cache.
constexpr int64_t kCreditRoom = models::GenerationLimits{}.kv_block_size;

/// The most tokens of a step.
int64_t step_tokens(const GenerateParams& params);

/// draft: null where no model guesses.
models::GenerationOptions generation_options(const GenerateParams& params, const SampledWeights& model,
                                             const SampledWeights* draft, const ModelText& text);

/// The pool has the blocks that the plan promised, of both models where one guesses.
models::GenerationLimits generation_limits(const GenerateParams& params, const SampledWeights& model, const SampledWeights* draft,
                                           const engine::NodeResources& resources);

/// Of samples that are drawn with `options`.
TurnRules turn_rules(const GenerateParams& params, const std::shared_ptr<const ModelText>& text,
                     const models::GenerationOptions& options, const engine::NodeResources& resources);

}  // namespace sluice::nodes
