#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/adaptable_matrices.h"
#include "models/layers/weights.h"

namespace sluice::models {

struct LoraOptions {
  int64_t rank = 16;
  double alpha = 32;                 // the change of a matrix is multiplied with alpha / rank
  std::vector<std::string> targets;  // see is_target
};

constexpr const char* kAllLinear = "all-linear";

/// True if one of `targets` means the matrix of this module name: it is "all-linear" or the end of the name from a dot on, with
/// or without the part: "q_proj", "self_attn.q_proj", "qkv_proj", "qkv_proj[query]".
bool is_target(const std::string& name, const std::vector<std::string>& targets);

/// Throws UserError where there is no target, or one that means none of the matrices of these module names. `experts`: those of a
/// mixture's matrices that can have no adapter; a target that means one of them alone is told so.
void check_targets(const std::vector<std::string>& names, const std::vector<std::string>& targets,
                   const std::vector<std::string>& experts = {});

/// Gives every matrix that options.targets mean, at least one, an adapter whose factors need a gradient, and freezes all other
/// weights but a value head, which is no change of anything. `a` is uniform in +-1/sqrt(K), as PEFT has it (Kaiming with a =
/// sqrt(5)), and depends on `seed` and its name only; `b` is zero, so that the model computes what it did. They are where
/// their matrix is.
void add_adapters(Weights& weights, const LoraOptions& options, uint64_t seed);

bool has_adapters(const Weights& weights);

/// The same tensors without the adapters: what the model computed before it was trained, as long as it trains only adapters.
Weights without_adapters(const Weights& weights);

}  // namespace sluice::models
