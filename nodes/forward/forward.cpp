#include "nodes/forward/forward.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/layers/feed_forward/routes.h"
#include "nodes/forward/passes.h"
#include "nodes/models/passes/pass_lead.h"

namespace sluice::nodes {

namespace {

PassRequest request_of(const RaggedSamples& samples, const at::Tensor& places) {
  return {.tokens = samples.tokens,
          .sample_offsets = samples.sample_offsets,
          .places = places,
          .targets = samples.targets,
          .routes = samples.routes};
}

PassRequest logprobs_request(const RaggedSamples& samples, double temperature) {
  PassRequest request = request_of(samples, samples.predicting);
  request.logprobs = true, request.temperature = temperature;
  return request;
}

// A tokenizer may have ids that the model has no row for.
void check_ids(const at::Tensor& tokens, const ForwardModel& model) {
  const int64_t vocabulary = model.config().vocab_size;
  const std::span<const int64_t> ids(tokens.const_data_ptr<int64_t>(), static_cast<size_t>(tokens.numel()));
  const auto stranger = std::ranges::find_if(ids, [&](int64_t id) { return id < 0 || id >= vocabulary; });
  if (stranger == ids.end()) return;
  throw UserError("token id " + std::to_string(*stranger) + " is outside the vocabulary of model " + model.name() +
                      ", which is of " + std::to_string(vocabulary),
                  "the tokenizer belongs to another model");
}

void check_routes(const at::Tensor& routes, const ForwardModel& model) {
  if (!routes.defined() || models::are_routes_of(models::route_form(model.config()), routes)) return;
  throw UserError("routes of samples do not fit the layers and experts of model " + model.name(),
                  "routes that a model of the same layers and experts was sampled with");
}

std::vector<at::Tensor> outputs_of_all_ranks(const ForwardModel& model, const PassRequest& request) {
  check_ids(request.tokens, model);
  check_routes(request.routes, model);
  if (AskedPasses* const asked = model.asked()) return asked->outputs_of(request);
  if (PassLead* const lead = model.lead()) return lead->outputs_of(model.transformer(), request);
  return outputs_of(model.transformer(), request, {.tokens = request.tokens.numel()});
}

}  // namespace

at::Tensor policy_logprobs(const ForwardModel& model, const RaggedSamples& samples, double temperature) {
  return outputs_of_all_ranks(model, logprobs_request(samples, temperature)).front();
}

PolicyOutputs policy_logprobs_and_entropy(const ForwardModel& model, const RaggedSamples& samples, double temperature) {
  PassRequest request = logprobs_request(samples, temperature);
  request.entropy = true;
  const std::vector<at::Tensor> outputs = outputs_of_all_ranks(model, request);
  return {outputs[0], outputs[1]};
}

PolicyAndValues policy_and_values(const ForwardModel& model, const RaggedSamples& samples, double temperature,
                                  bool with_entropy) {
  PassRequest request = logprobs_request(samples, temperature);
  request.entropy = with_entropy, request.values = true;
  const std::vector<at::Tensor> outputs = outputs_of_all_ranks(model, request);
  return {.policy = {.logprobs = outputs.front(), .entropy = with_entropy ? outputs[1] : at::Tensor()}, .values = outputs.back()};
}

at::Tensor token_values(const ForwardModel& model, const RaggedSamples& samples, const at::Tensor& places) {
  PassRequest request = request_of(samples, places);
  request.values = true;
  return outputs_of_all_ranks(model, request).front();
}

at::Tensor critic_values(const ForwardModel& model, const RaggedSamples& samples) {
  return token_values(model, samples, samples.predicting);
}

void fill_in_passes(const SampleColumns& columns, const engine::Layout& layout, int64_t pass_tokens,
                    const std::function<at::Tensor(const RaggedSamples&)>& compute, std::span<float> entries) {
  std::vector<size_t> all(layout.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  fill_in_passes(columns, layout, all, pass_tokens, compute, entries);
}

void fill_in_passes(const SampleColumns& columns, const engine::Layout& layout, std::span<const size_t> chosen,
                    int64_t pass_tokens, const std::function<at::Tensor(const RaggedSamples&)>& compute,
                    std::span<float> entries) {
  for (const std::vector<size_t>& pass : passes_of(layout, samples_that_count(layout, {}, chosen), pass_tokens)) {
    copy_entries(compute(some_samples(columns, layout, pass)), layout, pass, entries);
  }
}

void require_finite(std::span<const float> entries, const std::string& what) {
  const auto wrong = std::ranges::count_if(entries, [](float entry) { return !std::isfinite(entry); });
  if (wrong == 0) return;
  throw UserError(std::to_string(wrong) + " of " + std::to_string(entries.size()) + " " + what + " are not finite",
                  "its checkpoint is damaged, or training has diverged (a lower learning_rate, or clip_grad_norm)");
}

}  // namespace sluice::nodes
