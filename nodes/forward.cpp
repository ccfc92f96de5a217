#include "nodes/forward.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/training/action_logprobs.h"
#include "models/training/logits_chunk.h"

namespace sluice::nodes {

namespace {

// Final hidden states of the tokens that predict the actions, [A,H].
at::Tensor predicting_states(const models::Transformer& model, const RaggedSamples& samples) {
  return model.hidden_states(samples.tokens, samples.sample_offsets).index_select(0, samples.predicting);
}

// Of the actions that `states` [A,H] predict.
at::Tensor logprobs_of(const models::Transformer& model, const at::Tensor& states, const RaggedSamples& samples,
                       double temperature) {
  return models::action_logprobs(states, model.weights().head, samples.targets, temperature,
                                 models::logits_chunk(model.config().vocab_size), model.config().logit_softcap);
}

PolicyOutputs logprobs_and_entropy_of(const models::Transformer& model, const at::Tensor& states, const RaggedSamples& samples,
                                      double temperature) {
  const models::ActionLogprobs outputs =
      models::action_logprobs_and_entropy(states, model.weights().head, samples.targets, temperature,
                                          models::logits_chunk(model.config().vocab_size), model.config().logit_softcap);
  return {outputs.logprobs, outputs.entropy};
}

at::Tensor values_of(const models::Transformer& model, const at::Tensor& states) {
  return at::matmul(states, model.weights().value_head.squeeze(0).to(at::kFloat));
}

}  // namespace

at::Tensor policy_logprobs(const models::Transformer& model, const RaggedSamples& samples, double temperature) {
  return logprobs_of(model, predicting_states(model, samples), samples, temperature);
}

PolicyOutputs policy_logprobs_and_entropy(const models::Transformer& model, const RaggedSamples& samples, double temperature) {
  return logprobs_and_entropy_of(model, predicting_states(model, samples), samples, temperature);
}

PolicyAndValues policy_and_values(const models::Transformer& model, const RaggedSamples& samples, double temperature,
                                  bool with_entropy) {
  const at::Tensor states = predicting_states(model, samples);
  PolicyAndValues outputs{.policy = {}, .values = values_of(model, states)};
  if (with_entropy)
    outputs.policy = logprobs_and_entropy_of(model, states, samples, temperature);
  else
    outputs.policy.logprobs = logprobs_of(model, states, samples, temperature);
  return outputs;
}

at::Tensor critic_values(const models::Transformer& model, const RaggedSamples& samples) {
  return values_of(model, predicting_states(model, samples));
}

void require_finite(std::span<const float> entries, const std::string& what) {
  const auto wrong = std::ranges::count_if(entries, [](float entry) { return !std::isfinite(entry); });
  if (wrong == 0) return;
  throw UserError(std::to_string(wrong) + " of " + std::to_string(entries.size()) + " " + what + " are not finite",
                  "its checkpoint is damaged, or training has diverged (a lower learning_rate, or clip_grad_norm)");
}

}  // namespace sluice::nodes
