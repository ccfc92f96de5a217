#include "nodes/forward/forward.h"

#include <ATen/ops/index_select.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/value_head.h"
#include "nodes/forward/passes.h"

namespace sluice::nodes {

namespace {

at::Tensor on_device_of(const models::Transformer& model, const at::Tensor& places) { return places.to(model.device()); }

at::Tensor on_host(const at::Tensor& entries) { return entries.to(at::kCPU); }

models::LogprobOptions options_of(const models::Transformer& model, double temperature) {
  return {.temperature = temperature, .softcap = model.config().logit_softcap, .precision = model.compute().precision};
}

// Of the actions that `states` [A,H] predict.
at::Tensor logprobs_of(const models::Transformer& model, const at::Tensor& states, const RaggedSamples& samples,
                       double temperature) {
  return on_host(
      models::action_logprobs(states, model.weights(), on_device_of(model, samples.targets), options_of(model, temperature)));
}

PolicyOutputs logprobs_and_entropy_of(const models::Transformer& model, const at::Tensor& states, const RaggedSamples& samples,
                                      double temperature) {
  const models::ActionLogprobs outputs = models::action_logprobs_and_entropy(
      states, model.weights(), on_device_of(model, samples.targets), options_of(model, temperature));
  return {on_host(outputs.logprobs), on_host(outputs.entropy)};
}

at::Tensor values_of(const models::Transformer& model, const at::Tensor& states) {
  return on_host(models::head_values(states, model.weights().value_head));
}

}  // namespace

at::Tensor states_at(const models::Transformer& model, const RaggedSamples& samples, const at::Tensor& places) {
  const at::Tensor states = model.hidden_states(on_device_of(model, samples.tokens), samples.sample_offsets);  // [T,H]
  return states.index_select(0, on_device_of(model, places));
}

at::Tensor policy_logprobs(const models::Transformer& model, const RaggedSamples& samples, double temperature) {
  return logprobs_of(model, states_at(model, samples, samples.predicting), samples, temperature);
}

PolicyOutputs policy_logprobs_and_entropy(const models::Transformer& model, const RaggedSamples& samples, double temperature) {
  return logprobs_and_entropy_of(model, states_at(model, samples, samples.predicting), samples, temperature);
}

PolicyAndValues policy_and_values(const models::Transformer& model, const RaggedSamples& samples, double temperature,
                                  bool with_entropy) {
  const at::Tensor states = states_at(model, samples, samples.predicting);
  PolicyAndValues outputs{.policy = {}, .values = values_of(model, states)};
  if (with_entropy)
    outputs.policy = logprobs_and_entropy_of(model, states, samples, temperature);
  else
    outputs.policy.logprobs = logprobs_of(model, states, samples, temperature);
  return outputs;
}

at::Tensor critic_values(const models::Transformer& model, const RaggedSamples& samples) {
  return values_of(model, states_at(model, samples, samples.predicting));
}

void fill_in_passes(std::span<const int64_t> tokens, const engine::Layout& layout, int64_t pass_tokens,
                    const std::function<at::Tensor(const RaggedSamples&)>& compute, std::span<float> entries) {
  std::vector<size_t> all(layout.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  for (const std::vector<size_t>& pass : passes_of(layout, samples_that_count(layout, {}, all), pass_tokens)) {
    copy_entries(compute(some_samples(tokens, layout, pass)), layout, pass, entries);
  }
}

void require_finite(std::span<const float> entries, const std::string& what) {
  const auto wrong = std::ranges::count_if(entries, [](float entry) { return !std::isfinite(entry); });
  if (wrong == 0) return;
  throw UserError(std::to_string(wrong) + " of " + std::to_string(entries.size()) + " " + what + " are not finite",
                  "its checkpoint is damaged, or training has diverged (a lower learning_rate, or clip_grad_norm)");
}

}  // namespace sluice::nodes
