#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace sluice::models {

/// True where autograd records and one of the tensors needs a gradient. Undefined tensors need none.
bool records_gradient(const std::vector<at::Tensor>& inputs);

inline bool wants_gradient(const at::Tensor& weight) { return weight.defined() && weight.requires_grad(); }

/// Where the gradient of a weight is summed up: its .grad, made of zeros where there is none. Undefined where none is wanted.
/// Weights are leaves: their gradients never travel through autograd, so that no copy of them is made.
at::Tensor gradient_of(const at::Tensor& weight);

/// From the gradients of the outputs (undefined where there is none) to that of x. Runs once, without recording. The gradients
/// are moved in: who is their only owner may overwrite them.
using BackwardStep = std::function<at::Tensor(std::vector<at::Tensor>&& gradients)>;

/// Makes `outputs` the results of a differentiable function of x, which may be undefined, and of weights, whose gradients `step`
/// adds to gradient_of() itself.
void attach_backward(const std::vector<at::Tensor>& outputs, const at::Tensor& x, const std::vector<at::Tensor>& weights,
                     BackwardStep step);

/// The backward of all `outputs` together, from their gradients; where one is undefined there is none. It may run inside another
/// one.
void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients);

/// `gradient` in float32 rows side by side, which may be overwritten: itself if nobody else has it.
at::Tensor owned(at::Tensor&& gradient);

}  // namespace sluice::models
