#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/config.h"
#include "models/weights.h"

namespace sluice::models {

/// Every field of `weights` with its Hugging Face name, defined or not, in a fixed order: the one place that knows the names.
/// The pointers are valid as long as `weights.layers` is not resized.
std::vector<std::pair<std::string, at::Tensor*>> weight_slots(Weights& weights);
std::vector<std::pair<std::string, const at::Tensor*>> weight_slots(const Weights& weights);

/// A tensor that a model of this configuration has.
struct ExpectedWeight {
  enum class Kind { kMatrix, kNorm, kBias, kHead, kValueHead };

  std::string name;
  at::Tensor* slot;
  std::vector<int64_t> shape;
  Kind kind;
};

/// What a model with `config` needs, pointing into `weights`, whose layers are resized to match. A tied head is not listed.
std::vector<ExpectedWeight> expected_weights(const ModelConfig& config, bool value_head, Weights& weights);

/// Tensors that a folder may hold although nothing reads them: buffers that can be computed, and an output embedding
/// that is tied or unused.
bool is_ignorable_weight(const std::string& name, const ModelConfig& config, bool value_head);

}  // namespace sluice::models
