#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>

#include "nodes/forward/ragged.h"
#include "nodes/models/passes/forward_model.h"

namespace sluice::nodes {

// The results are on the CPU, wherever the model is: so what is made of them, objectives and metrics, is computed there. They are
// small, a number or two an action; a gradient goes back to the model's device by itself. Where other ranks compute passes of the
// model with this one, they do so here.

/// Natural log-probability of each action of `samples` under a language model, softmax(logits / temperature).
///
/// returns [A] float32, differentiable in the weights that need a gradient. At least one action; temperature > 0.
at::Tensor policy_logprobs(const ForwardModel& model, const RaggedSamples& samples, double temperature);

struct PolicyOutputs {
  at::Tensor logprobs;  // [A]
  at::Tensor entropy;   // [A] of the distribution that each action is drawn from, in nats
};

/// The same with the entropies, differentiable like them.
PolicyOutputs policy_logprobs_and_entropy(const ForwardModel& model, const RaggedSamples& samples, double temperature);

/// The same and the values of the states before the actions, by a model with both heads, in one pass.
struct PolicyAndValues {
  PolicyOutputs policy;  // without entropies unless they are asked for
  at::Tensor values;     // [A]
};

PolicyAndValues policy_and_values(const ForwardModel& model, const RaggedSamples& samples, double temperature, bool with_entropy);

/// What a value head makes of the tokens at `places` [N] (int64, into those of `samples`, ascending), each of which has seen all
/// tokens of its sample up to itself: [N] float32. At least one place. The same rules.
at::Tensor token_values(const ForwardModel& model, const RaggedSamples& samples, const at::Tensor& places);

/// Value of the state before each action: that of the token before it.
at::Tensor critic_values(const ForwardModel& model, const RaggedSamples& samples);

/// Fills `entries` [A], an action column of a micro-batch with these columns, with what `compute` makes of the actions [A'] of
/// some samples: in passes of at most `pass_tokens` tokens. Samples without actions are not computed.
void fill_in_passes(const SampleColumns& columns, const engine::Layout& layout, int64_t pass_tokens,
                    const std::function<at::Tensor(const RaggedSamples&)>& compute, std::span<float> entries);

/// The same of the samples `chosen` (ascending indices into those of `layout`) alone: the entries of the others stay as they are.
void fill_in_passes(const SampleColumns& columns, const engine::Layout& layout, std::span<const size_t> chosen,
                    int64_t pass_tokens, const std::function<at::Tensor(const RaggedSamples&)>& compute,
                    std::span<float> entries);

/// Throws UserError when one of `entries` is NaN or infinite, so that the node which computed it is named and not the one that
/// trains on it. `what`: "values of model critic".
void require_finite(std::span<const float> entries, const std::string& what);

}  // namespace sluice::nodes
