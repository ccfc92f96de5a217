#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "engine/contract/world/common_memory.h"
#include "models/train/adamw.h"

namespace sluice::nodes {

/// What ranks that train a model have in common of its training. A handle.
struct CommonTraining {
  models::CommonParameters parameters;
  at::Tensor copy;  // [floats] of weights, for checkpoints: each rank puts its part there
  engine::CommonMemory* memory = nullptr;
};

/// `trained`: the weights, in common memory (nodes/models/weights/common_weights.h). Waits for: the other ranks of `memory`. Ends
/// when: they have asked for the memory of this model too. Usable once these have met.
CommonTraining common_training(const std::string& model, const at::Tensor& trained, engine::CommonMemory& memory);

}  // namespace sluice::nodes
