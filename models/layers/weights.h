#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::models {

class FeedForward;
class PackedMatrix;
struct PackedMatrices;

/// A low-rank change of a matrix W [N,K]: training computes x (W + scale b a)^T with W frozen (Hu et al. 2021, "LoRA",
/// section 4.1). Both factors are undefined where there is none.
struct Adapter {
  at::Tensor a;      // [r,K]
  at::Tensor b;      // [N,r]
  double scale = 0;  // alpha / r

  bool defined() const { return a.defined(); }
};

/// A linear layer: x (weight + the adapter's change)^T + bias.
struct LinearWeights {
  at::Tensor weight;  // [N,K], or quantised: models/kernels/quantised_rows.h
  at::Tensor bias;    // [N], or undefined
  Adapter adapter;    // or none; lora.h makes them
};

/// A tensor of a feed-forward network: how a file holds it, and which of LayerWeights::feed_forward it is.
struct NetworkTensor {
  std::string name;  // in the file, after the prefix and the number of the layer
  size_t linear = 0;
  bool bias = false;
  std::vector<int64_t> shape;  // of the field: [outputs, inputs], or [outputs] of a bias
  std::string part;            // "up": of a tensor that several share, rows one after the other; empty: all of it
  bool transposed = false;     // [inputs, outputs] in the file
  bool adapts = true;          // its matrix may have an adapter (adaptable_matrices.h)
  bool quantises = true;       // it may be quantised where it is not trained
};

/// The feed-forward network of a layer. Those of layers that are alike are one.
struct Network {
  const FeedForward* kind;
  std::vector<NetworkTensor> tensors;
};

/// Weights of one decoder layer. H hidden, D head size, Nq query heads, Nk key/value heads. What the family does not have is an
/// undefined tensor. A file may hold several of these as one tensor, or transposed (weight_names.h); here they are always apart
/// and [outputs, inputs].
struct LayerWeights {
  at::Tensor attention_norm, attention_norm_bias;        // [H]: of what attention reads
  LinearWeights query, key, value;                       // [Nq*D,H], [Nk*D,H], [Nk*D,H]
  at::Tensor query_norm, key_norm;                       // [D] each, or [Nq*D] and [Nk*D]: see QkNorm
  LinearWeights attention_output;                        // [H,Nq*D]
  at::Tensor attention_output_norm;                      // [H]: of what attention adds
  at::Tensor feed_forward_norm, feed_forward_norm_bias;  // [H]: of what the feed-forward network reads
  std::shared_ptr<const Network> network;                // expected_weights() says which; none: an MLP (mlp.h)
  std::vector<LinearWeights> feed_forward;               // as `network` has them
  at::Tensor feed_forward_output_norm;                   // [H]: of what the feed-forward network adds

  /// Instead of the tensors of all linear layers, which then are undefined: Weights::is_packed().
  std::shared_ptr<const PackedMatrices> packed;

  /// All linear layers, those of attention first; those that the family does not have, too.
  std::vector<LinearWeights*> linears();
  std::vector<const LinearWeights*> linears() const;
};

/// All weights of a model: handles, so a copy of the struct shares storage; clone() does not.
struct Weights {
  std::string names_of;  // the family whose names the tensors carry (weight_tables.h); empty: those of the fields

  at::Tensor embedding;  // [V,H]
  at::Tensor positions;  // [max_positions,H]: learned positions
  std::vector<LayerWeights> layers;
  at::Tensor final_norm, final_norm_bias;  // [H]
  at::Tensor head;        // [V,H]; the same tensor as `embedding` when tied; undefined for a model without a language model head
  at::Tensor value_head;  // [1,H]; defined only for a model with a value head

  /// Instead of `head`, and of `embedding` where they are one, which then are undefined: is_packed().
  std::shared_ptr<const PackedMatrix> packed_head;  // [V,H]

  /// Matrices are what a version for sampling holds, packed (PackedWeights::for_passes()): for passes without gradient, on the
  /// CPU. Norms, learned positions and an embedding of its own are tensors as ever.
  bool is_packed() const { return packed_head != nullptr; }

  /// Every distinct tensor with its Hugging Face name, in a fixed order. A part of a tensor of the file has the part after the
  /// name: "model.layers.0.self_attn.qkv_proj.weight[query]". The factors of an adapter come last, under the name of their
  /// matrix: "model.layers.0.self_attn.q_proj.lora_A.weight".
  std::vector<std::pair<std::string, at::Tensor>> named() const;

  /// Those of named() that need a gradient.
  std::vector<std::pair<std::string, at::Tensor>> trainable() const;

  /// The same tensors but for those of named() that `tensors` names, which take their place (tied tensors stay tied).
  Weights with(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const;

  /// A detached deep copy (tied tensors stay tied) that needs no gradient.
  Weights clone() const;

  /// Detached and on `device` (tied tensors stay tied); tensors that are there already are shared.
  Weights to(at::Device device) const;

  /// Copies the values of `source` into the storage of this one. Same shapes required.
  void copy_from(const Weights& source);
};

}  // namespace sluice::models
