#include "nodes/models/passes/pass_request.h"

#include <ATen/ops/index_select.h>

#include "models/forward/action_logprobs.h"
#include "models/forward/value_head.h"

namespace sluice::nodes {
namespace {

at::Tensor on_host(const at::Tensor& entries) { return entries.to(at::kCPU); }

// Of the places, [N,H]: those of all tokens are gone then.
at::Tensor states_at_places(const models::Transformer& model, const PassRequest& request, const models::Segment& segment) {
  const at::Tensor all =  // [n,H]
      model.hidden_states(request.tokens.to(model.device()), request.sample_offsets, segment, request.routes);
  return all.index_select(0, request.places.to(model.device()));
}

void add_logprobs(const models::Transformer& model, const PassRequest& request, const at::Tensor& states,
                  std::vector<at::Tensor>& outputs) {
  const models::LogprobOptions options{
      .temperature = request.temperature, .softcap = model.config().logit_softcap, .precision = model.compute().precision};
  const at::Tensor targets = request.targets.to(model.device());
  if (!request.entropy) return outputs.push_back(on_host(models::action_logprobs(states, model.weights(), targets, options)));
  const models::ActionLogprobs of_actions = models::action_logprobs_and_entropy(states, model.weights(), targets, options);
  outputs.push_back(on_host(of_actions.logprobs));
  outputs.push_back(on_host(of_actions.entropy));
}

}  // namespace

std::vector<at::Tensor> outputs_of(const models::Transformer& model, const PassRequest& request, const models::Segment& segment) {
  const at::Tensor states = states_at_places(model, request, segment);
  if (request.places.numel() == 0) return std::vector<at::Tensor>(request.outputs(), states.sum(1));
  std::vector<at::Tensor> outputs;
  if (request.logprobs) add_logprobs(model, request, states, outputs);
  if (request.values) outputs.push_back(on_host(models::head_values(states, model.weights().value_head)));
  return outputs;
}

}  // namespace sluice::nodes
