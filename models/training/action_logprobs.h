#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::models {

struct ActionLogprobs {
  at::Tensor logprobs;  // [A]  natural log of the probability of each target; differentiable
  at::Tensor entropy;   // [A]  of the distribution each target was drawn from, in nats; differentiable
};

/// Log-probability of each action under softmax(cap(hidden head^T) / temperature), without the logits of all actions at once.
/// cap(z) = softcap tanh(z / softcap), or z where softcap is 0 (ModelConfig::logit_softcap): the temperature is what samples, the
/// cap is part of the model.
///
/// hidden  [A,H]  final hidden states at the positions that predict the actions
/// head    [V,H]  output embedding
/// targets [A]    int64, sampled ids, 0 <= id < V
///
/// Works through chunks of `chunk` actions: peak extra memory is 2 * chunk * V floats. Differentiable in hidden and head; the
/// backward recomputes each chunk. Any float dtype and device; with a head in bfloat16 or float16
/// each logit is one of that dtype (narrow_forward.h), and nothing has a gradient.
/// Throws InternalError on a shape mismatch, a temperature that is not positive, a negative softcap or a chunk below 1 (callers
/// validate user data).
/// Source: chunked cross-entropy, Wijmans et al. 2024, "Cut Your Losses", section 4.
at::Tensor action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                           int64_t chunk, double softcap = 0.0);

/// The same, with the entropies.
ActionLogprobs action_logprobs_and_entropy(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                           double temperature, int64_t chunk, double softcap = 0.0);

}  // namespace sluice::models
