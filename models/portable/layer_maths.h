#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <set>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/feed_forward/router_training.h"
#include "models/layers/feed_forward/routes.h"
#include "models/layers/tensor_maths.h"
#include "models/layers/weights.h"

// models/portable/: the transformer in LibTorch's own operators, on any device. It is what computes on a GPU, and beside the
// CPU's kernels it is their plain reference. One row's result may depend on how many there are: the library picks its
// algorithms by size.
namespace sluice::models::portable {

/// What is around attention in one decoder layer, with all that a ModelConfig says. Differentiable by autograd. Weights are
/// float32, or matrices and embedding already in the precision (operand_copy()); all are on the device of what is computed.
///
/// With Precision::kBfloat16 the operands of products are rounded (product.h); sums, residual stream, norms, activations,
/// rotary positions and softmax are float32. Refers to `config`, which must outlive it.
class LayerMaths final : public TensorMaths {
 public:
  LayerMaths(const ModelConfig& config, Precision precision) : config_(config), precision_(precision) {}

  /// Queries, keys and values as attention takes them: rotated, operands.
  struct Heads {
    at::Tensor query;       // [T,Nq,D]
    at::Tensor key, value;  // [T,Nk,D]
  };

  /// What the first layer reads. tokens, positions [T] int64; returns [T,H] float32.
  at::Tensor embed(const Weights& weights, const at::Tensor& tokens, const at::Tensor& positions) const;

  /// angles [T,R]: of each token R/2 cosines, then R/2 sines (RotaryTable); undefined where nothing is rotated.
  Heads heads(const at::Tensor& x, const LayerWeights& layer, const at::Tensor& angles) const;

  /// x [T,H] plus what the layer makes of attended [T,Nq*D].
  at::Tensor add_attended(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& layer) const;

  /// x [T,H] plus what the feed-forward network of the layer, which `index` is the number of, makes of it. `router`, `routes`: as
  /// FeedForward::in_operators() has them.
  at::Tensor add_feed_forward(const at::Tensor& x, const LayerWeights& layer, int64_t index,
                              const RouterOfLayer* router = nullptr, const RoutesInOperators& routes = {}) const;

  at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) const;

  /// Capped logits of hidden [S,H], after the last norm: [S,V] float32.
  at::Tensor logits(const at::Tensor& hidden, const at::Tensor& head) const;

  at::Tensor operand(const at::Tensor& x) const override;
  at::Tensor product(const at::Tensor& x, const LinearWeights& layer) const override;
  at::Tensor gated(Activation activation, const at::Tensor& x, const LinearWeights& gate, const LinearWeights& up) const override;

 private:
  at::Tensor read(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias) const;
  at::Tensor added(const at::Tensor& x, const at::Tensor& out, const at::Tensor& norm_weight) const;
  at::Tensor normalised_as(at::ScalarType dtype, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;
  at::Tensor split(const at::Tensor& x, const at::Tensor& norm_weight) const;

  const ModelConfig& config_;
  Precision precision_;
};

/// What heads() takes in a layer: one of the angles [T,R] of each config.rope_at(), or nothing.
at::Tensor angles_of_layer(const ModelConfig& config, const std::vector<at::Tensor>& angles, int64_t layer);

/// `weights` as generation reads them again and again: detached, matrices of layers, embedding and head in the precision (tied
/// ones stay tied), adapters merged into their matrices, the rest shared.
Weights operand_copy(const Weights& weights, Precision precision);

/// Writes the values of operand_copy(from, ...) into `to`, which is a copy of such a one: one matrix more at a time is all
/// that is allocated.
void copy_operands(const Weights& from, Weights& to);

/// Likewise of what is trained, but for the tensors of `to` that begin at one of these places.
void copy_trained_operands(const Weights& from, Weights& to, const std::set<const void*>& but);

}  // namespace sluice::models::portable
