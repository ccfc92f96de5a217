#include "models/training/action_logprobs.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/library/action_logprobs.h"
#include "models/training/matrix_products.h"
#include "models/training/narrow_forward.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What the logits of an action are made into before the softmax.
struct LogitScale {
  double temperature, softcap;

  // cap(hidden[c,H] head[V,H]^T) / temperature: [c,V]
  at::Tensor logits(const at::Tensor& hidden, const at::Tensor& head) const {
    if (at::isReducedFloatingType(head.scalar_type())) return narrow_logits(hidden, head, softcap).div_(temperature);
    const at::Tensor result = layer_output(hidden, head);
    if (softcap != 0) result.div_(softcap).tanh_().mul_(softcap);
    if (temperature != 1.0) result.div_(temperature);
    return result;
  }

  // Overwrites what logits() gave with its derivative by the logits before the cap, but for the temperature.
  const at::Tensor& to_slope_of_cap(const at::Tensor& logits) const {
    return logits.mul_(temperature / softcap).square_().neg_().add_(1.0);
  }
};

template <class Work>
void for_each_chunk(int64_t actions, int64_t chunk, const Work& work) {
  for (int64_t first = 0; first < actions; first += chunk) work(first, std::min(chunk, actions - first));
}

class ActionLogprobsFunction : public torch::autograd::Function<ActionLogprobsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, int64_t chunk, double softcap, bool with_entropy) {
    const LogitScale scale{temperature, softcap};
    const at::Tensor chosen = at::empty({hidden.size(0)}, hidden.options());
    const at::Tensor entropy = at::empty({with_entropy ? hidden.size(0) : 0}, hidden.options());
    for_each_chunk(hidden.size(0), chunk, [&](int64_t first, int64_t count) {
      const at::Tensor all = at::_log_softmax(scale.logits(hidden.narrow(0, first, count), head), 1, false);  // [c,V]
      chosen.narrow(0, first, count).copy_(all.gather(1, targets.narrow(0, first, count).unsqueeze(1)).squeeze(1));
      if (with_entropy) entropy.narrow(0, first, count).copy_(all.exp().mul_(all).sum(1).neg_());
    });
    context->save_for_backward({hidden, head, targets, entropy});
    context->set_materialize_grads(false);  // without a gradient of the entropies the backward does without its work
    context->saved_data["temperature"] = temperature;
    context->saved_data["softcap"] = softcap;
    context->saved_data["chunk"] = chunk;
    return {chosen, entropy};
  }

  // d logprob / d logit = (1 at the target) - probability;  d entropy / d logit = -probability * (log probability + entropy)
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &head = saved[1], &targets = saved[2], &entropy = saved[3];
    const bool by_entropy = gradients[1].defined();
    const at::Tensor grad_logprobs = gradients[0].defined() ? gradients[0] : at::zeros_like(gradients[1]);
    const LogitScale scale{context->saved_data["temperature"].toDouble(), context->saved_data["softcap"].toDouble()};
    const bool wants_hidden = context->needs_input_grad(0), wants_head = context->needs_input_grad(1);
    const at::Tensor grad_hidden = wants_hidden ? at::zeros_like(hidden) : at::Tensor();
    const at::Tensor grad_head = wants_head ? at::zeros_like(head) : at::Tensor();
    for_each_chunk(hidden.size(0), context->saved_data["chunk"].toInt(), [&](int64_t first, int64_t count) {
      const at::Tensor hidden_part = hidden.narrow(0, first, count);
      const at::Tensor grad = grad_logprobs.narrow(0, first, count).div(scale.temperature).unsqueeze(1);  // [c,1]
      at::Tensor logits = scale.logits(hidden_part, head);                                                // [c,V]
      const at::Tensor log_probabilities = at::_log_softmax(logits, 1, false);                            // [c,V]
      at::Tensor slope_of_entropy;                                                                        // [c,V]
      if (by_entropy) slope_of_entropy = log_probabilities.add(entropy.narrow(0, first, count).unsqueeze(1));
      const at::Tensor probabilities = log_probabilities.exp_();
      if (by_entropy) slope_of_entropy.mul_(probabilities);
      const at::Tensor grad_logits = probabilities.mul_(-grad);
      grad_logits.scatter_add_(1, targets.narrow(0, first, count).unsqueeze(1), grad);
      if (by_entropy) {
        const at::Tensor of_entropy = gradients[1].narrow(0, first, count).div(scale.temperature).unsqueeze(1);
        grad_logits.sub_(slope_of_entropy.mul_(of_entropy));
      }
      if (scale.softcap != 0) grad_logits.mul_(scale.to_slope_of_cap(logits));
      logits.reset();
      if (wants_hidden) add_input_gradient(grad_hidden.narrow(0, first, count), grad_logits, head);
      if (wants_head) add_weight_gradient(grad_head, grad_logits, hidden_part);
    });
    variable_list result(7);
    result[0] = grad_hidden, result[1] = grad_head;
    return result;
  }
};

variable_list compute(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                      int64_t chunk, double softcap, bool with_entropy) {
  SLUICE_CHECK(hidden.dim() == 2 && head.dim() == 2 && hidden.size(1) == head.size(1),
               "hidden [A,H] and head [V,H] must agree in H");
  SLUICE_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
               "targets must be int64 [A]");
  SLUICE_CHECK(temperature > 0 && chunk > 0, "temperature and chunk must be positive");
  SLUICE_CHECK(softcap >= 0, "a soft cap is positive, or 0 for none");
  return ActionLogprobsFunction::apply(hidden, head, targets, temperature, chunk, softcap, with_entropy);
}

}  // namespace

at::Tensor action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                           int64_t chunk, double softcap) {
  if (!hidden.is_cpu()) return library::action_logprobs(hidden, head, targets, {.temperature = temperature, .softcap = softcap}).logprobs;
  return compute(hidden, head, targets, temperature, chunk, softcap, false)[0];
}

ActionLogprobs action_logprobs_and_entropy(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                           double temperature, int64_t chunk, double softcap) {
  if (!hidden.is_cpu()) {
    const auto of_device =
        library::action_logprobs(hidden, head, targets, {.temperature = temperature, .softcap = softcap, .entropy = true});
    return {of_device.logprobs, of_device.entropy};
  }
  const variable_list outputs = compute(hidden, head, targets, temperature, chunk, softcap, true);
  return {outputs[0], outputs[1]};
}

}  // namespace sluice::models
