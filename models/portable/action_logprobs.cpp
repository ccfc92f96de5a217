#include "models/portable/action_logprobs.h"

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "base/error.h"
#include "models/portable/abilities.h"
#include "models/portable/product.h"

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Work>
void for_each_chunk(const at::Tensor& hidden, const at::Tensor& head, const Work& work) {
  const int64_t chunk = rows_at_a_time(head.size(0), works_apart(head.device()));
  for (int64_t first = 0; first < hidden.size(0); first += chunk) work(first, std::min(chunk, hidden.size(0) - first));
}

// cap(hidden head^T), of narrow or wide operands: [c,V] float32
at::Tensor capped_logits(const at::Tensor& hidden, const at::Tensor& head, double softcap) {
  at::Tensor logits = wide_product(hidden, head.t());
  return softcap == 0 ? logits : logits.div_(softcap).tanh_().mul_(softcap);
}

class ActionLogprobsFunction : public torch::autograd::Function<ActionLogprobsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, double softcap, bool narrow, bool with_entropy) {
    const at::ScalarType dtype = narrow ? at::kBFloat16 : at::kFloat;
    const at::Tensor operand = head.to(dtype);
    const at::Tensor logprobs = at::empty({hidden.size(0)}, hidden.options());
    const at::Tensor entropy = at::empty({with_entropy ? hidden.size(0) : 0}, hidden.options());
    for_each_chunk(hidden, head, [&](int64_t first, int64_t count) {
      at::Tensor logits = capped_logits(hidden.narrow(0, first, count).to(dtype), operand, softcap);
      const at::Tensor all = at::_log_softmax(logits.div_(temperature), 1, false);  // [c,V]
      logits.reset();
      logprobs.narrow(0, first, count).copy_(all.gather(1, targets.narrow(0, first, count).unsqueeze(1)).squeeze(1));
      if (with_entropy) entropy.narrow(0, first, count).copy_(all.exp().mul_(all).sum(1).neg_());
    });
    context->save_for_backward({hidden, head, targets, entropy});
    context->set_materialize_grads(false);  // without a gradient of the entropies the backward does without its work
    context->saved_data["temperature"] = temperature;
    context->saved_data["softcap"] = softcap;
    context->saved_data["narrow"] = narrow;
    return {logprobs, entropy};
  }

  // d logprob / d logit = (1 at the target) - probability;  d entropy / d logit = -probability * (log probability + entropy)
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &head = saved[1], &targets = saved[2], &entropy = saved[3];
    const double temperature = context->saved_data["temperature"].toDouble();
    const double softcap = context->saved_data["softcap"].toDouble();
    const at::ScalarType dtype = context->saved_data["narrow"].toBool() ? at::kBFloat16 : at::kFloat;
    const at::Tensor of_logprobs = gradients[0].defined() ? gradients[0] : at::zeros({hidden.size(0)}, hidden.options());
    const at::Tensor operand = head.to(dtype);
    variable_list result(7);
    if (context->needs_input_grad(0)) result[0] = at::empty(hidden.sizes(), hidden.options());
    if (context->needs_input_grad(1)) result[1] = at::zeros(head.sizes(), hidden.options());
    for_each_chunk(hidden, head, [&](int64_t first, int64_t count) {
      const auto part = [&](const at::Tensor& x) { return x.narrow(0, first, count); };
      const at::Tensor in = part(hidden).to(dtype);
      const bool with_entropy = gradients[1].defined();
      at::Tensor logits = capped_logits(in, operand, softcap);                                               // [c,V]
      const at::Tensor of_cap = softcap == 0 ? at::Tensor() : logits.div(softcap).square_().neg_().add_(1);  // 1 - tanh^2
      const at::Tensor all = at::_log_softmax(logits.div_(temperature), 1, false);
      logits.reset();
      const at::Tensor probabilities = with_entropy ? all.exp() : all.exp_();
      const at::Tensor grad = part(of_logprobs).unsqueeze(1);  // [c,1]
      const at::Tensor slope = (with_entropy ? probabilities.mul(grad) : probabilities.mul_(grad)).neg_();
      slope.scatter_add_(1, part(targets).unsqueeze(1), grad);
      if (with_entropy)
        slope.sub_(all.add_(part(entropy).unsqueeze(1)).mul_(probabilities).mul_(part(gradients[1]).unsqueeze(1)));
      slope.div_(temperature);
      if (of_cap.defined()) slope.mul_(of_cap);
      const at::Tensor narrow_slope = slope.to(dtype);
      if (result[0].defined()) part(result[0]).copy_(wide_product(narrow_slope, operand));
      if (result[1].defined()) add_wide_product(result[1], narrow_slope.t(), in);
    });
    return result;
  }
};

}  // namespace

int64_t rows_at_a_time(int64_t vocabulary, bool apart) {
  constexpr int64_t kLogits = int64_t{1} << 23, kLeast = 16, kLeastApart = 2048;
  return std::max(apart ? kLeastApart : kLeast, kLogits / vocabulary);
}

ActionLogprobs action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                               const LogprobOptions& options) {
  SLUICE_CHECK(hidden.dim() == 2 && head.dim() == 2 && hidden.size(1) == head.size(1),
               "hidden [A,H] and head [V,H] must agree in H");
  SLUICE_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
               "targets must be int64 [A]");
  SLUICE_CHECK(options.temperature > 0 && options.softcap >= 0, "a temperature is positive, a soft cap not negative");
  const variable_list outputs = ActionLogprobsFunction::apply(hidden, head, targets, options.temperature, options.softcap,
                                                              options.precision == Precision::kBfloat16, options.entropy);
  return {outputs[0], options.entropy ? outputs[1] : at::Tensor()};
}

}  // namespace sluice::models::portable
