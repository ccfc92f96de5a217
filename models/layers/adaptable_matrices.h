#pragma once

#include <string>
#include <vector>

#include "models/layers/weights.h"

namespace sluice::models {

/// What adapters call the matrix whose tensor is `weight`: "model.layers.0.self_attn.q_proj" for
/// "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.qkv_proj[query]" for the part of one.
std::string module_name(std::string weight);

/// The names of the factors of the adapter of a matrix of that module name.
std::string factor_a_name(const std::string& module);
std::string factor_b_name(const std::string& module);

/// A matrix of a layer that can have an adapter: all but the experts of a mixture and what weighs them (NetworkTensor::adapts).
struct AdaptableMatrix {
  std::string name;  // module_name()
  at::Tensor* weight;
  Adapter* adapter;
};

/// Those that `weights` has, in the order of its layers. The pointers are valid as long as `weights.layers` is not resized.
std::vector<AdaptableMatrix> adaptable_matrices(Weights& weights);

}  // namespace sluice::models
