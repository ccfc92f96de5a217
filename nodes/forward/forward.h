#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>

#include "models/forward/transformer.h"
#include "nodes/forward/ragged.h"

namespace sluice::nodes {

// The results are on the CPU, wherever the model is: so what is made of them, objectives and metrics, is computed there. They are
// small, a number or two an action; a gradient goes back to the model's device by itself.

/// Natural log-probability of each action of `samples` under a language model, softmax(logits / temperature).
///
/// returns [A] float32, differentiable in the weights that need a gradient. At least one action; temperature > 0.
at::Tensor policy_logprobs(const models::Transformer& model, const RaggedSamples& samples, double temperature);

/// Final hidden states of the tokens at `places`[N], on the model's device: [N,H].
at::Tensor states_at(const models::Transformer& model, const RaggedSamples& samples, const at::Tensor& places);

struct PolicyOutputs {
  at::Tensor logprobs;  // [A]
  at::Tensor entropy;   // [A] of the distribution that each action is drawn from, in nats
};

/// The same with the entropies, differentiable like them.
PolicyOutputs policy_logprobs_and_entropy(const models::Transformer& model, const RaggedSamples& samples, double temperature);

/// The same and the values of the states before the actions, by a model with both heads, in one pass.
struct PolicyAndValues {
  PolicyOutputs policy;  // without entropies unless they are asked for
  at::Tensor values;     // [A]
};

PolicyAndValues policy_and_values(const models::Transformer& model, const RaggedSamples& samples, double temperature,
                                  bool with_entropy);

/// Value of the state before each action: what a value head makes of the token before it. The same rules.
at::Tensor critic_values(const models::Transformer& model, const RaggedSamples& samples);

/// Fills `entries` [A], an action column of a micro-batch with these tokens [T], with what `compute` makes of the actions [A'] of
/// some samples: in passes of at most `pass_tokens` tokens. Samples without actions are not computed.
void fill_in_passes(std::span<const int64_t> tokens, const engine::Layout& layout, int64_t pass_tokens,
                    const std::function<at::Tensor(const RaggedSamples&)>& compute, std::span<float> entries);

/// Throws UserError when one of `entries` is NaN or infinite, so that the node which computed it is named and not the one that
/// trains on it. `what`: "values of model critic".
void require_finite(std::span<const float> entries, const std::string& what);

}  // namespace sluice::nodes
