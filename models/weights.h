#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::models {

/// Weights of one decoder layer. H hidden, D head size, Nq query heads, Nk key/value heads, I intermediate.
/// A bias is an undefined tensor where the family has none.
struct LayerWeights {
  at::Tensor attention_norm;     // [H]
  at::Tensor query, key, value;  // [Nq*D,H], [Nk*D,H], [Nk*D,H]
  at::Tensor query_bias, key_bias, value_bias;
  at::Tensor attention_output;  // [H,Nq*D]
  at::Tensor mlp_norm;          // [H]
  at::Tensor gate, up, down;    // [I,H], [I,H], [H,I]
};

/// All weights of a model: handles, so a copy of the struct shares storage; clone() does not.
struct Weights {
  at::Tensor embedding;  // [V,H]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [H]
  at::Tensor head;        // [V,H]; the same tensor as `embedding` when tied; undefined for a model with a value head
  at::Tensor value_head;  // [1,H]; defined only for a model with a value head

  /// Every distinct tensor with its Hugging Face name, in a fixed order.
  std::vector<std::pair<std::string, at::Tensor>> named() const;

  /// A detached deep copy (tied tensors stay tied) that needs no gradient.
  Weights clone() const;

  /// Copies the values of `source` into the storage of this one. Same shapes required.
  void copy_from(const Weights& source);

  int64_t parameter_count() const;
};

}  // namespace sluice::models
