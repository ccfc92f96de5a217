#include "models/action_logprobs.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/matrix_products.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// log softmax(hidden[c,H] head[V,H]^T / temperature): [c,V]
at::Tensor log_probabilities(const at::Tensor& hidden, const at::Tensor& head, double temperature) {
  at::Tensor logits = layer_output(hidden, head);
  if (temperature != 1.0) logits.div_(temperature);
  return at::_log_softmax(logits, 1, false);
}

template <class Work>
void for_each_chunk(int64_t actions, int64_t chunk, const Work& work) {
  for (int64_t first = 0; first < actions; first += chunk) work(first, std::min(chunk, actions - first));
}

class ActionLogprobsFunction : public torch::autograd::Function<ActionLogprobsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, int64_t chunk, bool with_entropy) {
    const at::Tensor chosen = at::empty({hidden.size(0)}, hidden.options());
    const at::Tensor entropy = at::empty({with_entropy ? hidden.size(0) : 0}, hidden.options());
    for_each_chunk(hidden.size(0), chunk, [&](int64_t first, int64_t count) {
      const at::Tensor all = log_probabilities(hidden.narrow(0, first, count), head, temperature);  // [c,V]
      chosen.narrow(0, first, count).copy_(all.gather(1, targets.narrow(0, first, count).unsqueeze(1)).squeeze(1));
      if (with_entropy) entropy.narrow(0, first, count).copy_(all.exp().mul_(all).sum(1).neg_());
    });
    context->save_for_backward({hidden, head, targets});
    context->saved_data["temperature"] = temperature;
    context->saved_data["chunk"] = chunk;
    context->mark_non_differentiable({entropy});
    return {chosen, entropy};
  }

  // d logprob / d logit = (1 at the target) - probability
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &head = saved[1], &targets = saved[2];
    const double temperature = context->saved_data["temperature"].toDouble();
    const bool wants_hidden = context->needs_input_grad(0), wants_head = context->needs_input_grad(1);
    const at::Tensor grad_hidden = wants_hidden ? at::zeros_like(hidden) : at::Tensor();
    const at::Tensor grad_head = wants_head ? at::zeros_like(head) : at::Tensor();
    for_each_chunk(hidden.size(0), context->saved_data["chunk"].toInt(), [&](int64_t first, int64_t count) {
      const at::Tensor hidden_part = hidden.narrow(0, first, count);
      const at::Tensor grad = gradients[0].narrow(0, first, count).div(temperature).unsqueeze(1);           // [c,1]
      const at::Tensor grad_logits = log_probabilities(hidden_part, head, temperature).exp_().mul_(-grad);  // [c,V]
      grad_logits.scatter_add_(1, targets.narrow(0, first, count).unsqueeze(1), grad);
      if (wants_hidden) add_input_gradient(grad_hidden.narrow(0, first, count), grad_logits, head);
      if (wants_head) add_weight_gradient(grad_head, grad_logits, hidden_part);
    });
    return {grad_hidden, grad_head, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

variable_list compute(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                      int64_t chunk, bool with_entropy) {
  SLUICE_CHECK(hidden.dim() == 2 && head.dim() == 2 && hidden.size(1) == head.size(1),
               "hidden [A,H] and head [V,H] must agree in H");
  SLUICE_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
               "targets must be int64 [A]");
  SLUICE_CHECK(temperature > 0 && chunk > 0, "temperature and chunk must be positive");
  return ActionLogprobsFunction::apply(hidden, head, targets, temperature, chunk, with_entropy);
}

}  // namespace

at::Tensor action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                           int64_t chunk) {
  return compute(hidden, head, targets, temperature, chunk, false)[0];
}

ActionLogprobs action_logprobs_and_entropy(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                           double temperature, int64_t chunk) {
  const variable_list outputs = compute(hidden, head, targets, temperature, chunk, true);
  return {outputs[0], outputs[1]};
}

}  // namespace sluice::models
