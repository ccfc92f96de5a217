#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/layers/feed_forward/inner.h"
#include "models/layers/feed_forward/routing.h"
#include "models/layers/layer_pass.h"
#include "models/layers/tensor_shape.h"
#include "models/layers/weights.h"

namespace sluice::models {

// One expert of a mixture in training, on the CPU: a gated MLP over the rows of its tokens.

/// What one expert and its memory depend on.
struct ExpertShape {
  const PassShape& pass;
  int64_t size;    // I
  bool takes_all;  // its rows lie side by side, as those of the pass for the shared expert: none is gathered
  int64_t rows;    // at most
};

/// What the functions below allocate at most, whatever the routing: an expert may get every token. One is worked on at a time.
int64_t expert_forward_bytes(const ExpertShape& shape);
int64_t expert_backward_bytes(const ExpertShape& shape);
int64_t expert_output_bytes(const ExpertShape& shape);
int64_t expert_output_backward_bytes(const ExpertShape& shape);

struct ExpertWeights {
  const LinearWeights &gate, &up, &down;  // [I,H], [I,H], [H,I]
};

/// Of the linear layers of a mixture; the shared expert is after all others.
ExpertWeights expert_of(std::span<const LinearWeights> weights, size_t expert);

/// Memory for one of the functions below, for every expert of a shape, so that what a pass takes does not depend on the routing.
struct ExpertWork {
  std::vector<at::Tensor> tensors;

  static ExpertWork of_forward(const ExpertShape& shape) { return {allocated(forward_shapes(shape))}; }
  static ExpertWork of_backward(const ExpertShape& shape) { return {allocated(backward_shapes(shape))}; }
  static ExpertWork of_output(const ExpertShape& shape) { return {allocated(output_shapes(shape))}; }
  static ExpertWork of_output_backward(const ExpertShape& shape) { return {allocated(output_backward_shapes(shape))}; }

  static TensorShapes forward_shapes(const ExpertShape& shape);
  static TensorShapes backward_shapes(const ExpertShape& shape);
  static TensorShapes output_shapes(const ExpertShape& shape);
  static TensorShapes output_backward_shapes(const ExpertShape& shape);
};

/// out[T,H] += weight times what the expert makes of in[T,H], for its rows. `kept`: [count,I], or nothing.
void expert_forward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRows& rows, const at::Tensor& in,
                    const Inner& kept, const ExpertWork& work, const at::Tensor& out);

/// From grad[T,H], of the mixture's result, adds to that of in, of_in[T,H], for its rows; of_weights[T,per_token] becomes that
/// of the rows' weights. Adds the gradients of the matrices, which are there, of zeros, even where no token went through. Uses
/// up `kept`.
void expert_backward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRows& rows, const at::Tensor& in,
                     const Inner& kept, const at::Tensor& grad, const ExpertWork& work, float* of_weights,
                     const at::Tensor& of_in);

/// y[n,H], float32, becomes what the expert makes of x[n,H], an operand: rows side by side, without their weights.
void expert_output(const LayerPass& pass, const ExpertWeights& weights, const at::Tensor& x, const ExpertWork& work,
                   const at::Tensor& y);

/// Rows side by side, at most as many as a product of gradients takes at a time: what the expert read and the gradient of the
/// mixture's result, [n,H], operands; and what each counts, [n,1].
struct ExpertRead {
  at::Tensor x, grad, weights;
};

/// The gradients of what it read, [n,H], and of the weights, [n,1]: float32.
struct ExpertReadGradients {
  at::Tensor of_x, of_weights;
};

/// Fills `out`, and adds the gradients of the matrices, with the bits of expert_backward(). Nothing was kept: what is between the
/// projections is computed again.
void expert_output_backward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRead& read, const ExpertWork& work,
                            const ExpertReadGradients& out);

}  // namespace sluice::models
