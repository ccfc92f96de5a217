#pragma once

#include <ATen/core/Tensor.h>

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
  bool takes_all;  // the shared expert, whose rows are those of the pass as they lie
};

/// What the two allocate at most, whatever the routing: an expert may get every token. One expert is worked on at a time.
int64_t expert_forward_bytes(const ExpertShape& shape);
int64_t expert_backward_bytes(const ExpertShape& shape);

struct ExpertWeights {
  const LinearWeights &gate, &up, &down;  // [I,H], [I,H], [H,I]
};

/// Memory for expert_forward() of every expert of a shape, and for expert_backward(), so that what a pass takes does not depend
/// on the routing.
struct ExpertWork {
  std::vector<at::Tensor> tensors;

  static ExpertWork of_forward(const ExpertShape& shape) { return {allocated(forward_shapes(shape))}; }
  static ExpertWork of_backward(const ExpertShape& shape) { return {allocated(backward_shapes(shape))}; }

  static TensorShapes forward_shapes(const ExpertShape& shape);
  static TensorShapes backward_shapes(const ExpertShape& shape);
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

}  // namespace sluice::models
