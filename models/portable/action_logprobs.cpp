#include "models/portable/action_logprobs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/cuda/logit_rows.h"
#include "models/portable/abilities.h"
#include "models/portable/product.h"

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

LogitWork work_on(at::Device device) {
  if (has_own_operator(device, "sluice::logit_rows")) return LogitWork::kOwnKernel;
  return works_apart(device) ? LogitWork::kApart : LogitWork::kHost;
}

// Calls work(first, count): in order, or from the last chunk to the first.
template <class Work>
void for_each_chunk(const at::Tensor& hidden, const at::Tensor& head, LogitWork by, bool backwards, const Work& work) {
  const int64_t actions = hidden.size(0), chunk = rows_at_a_time(head.size(0), by), chunks = (actions + chunk - 1) / chunk;
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t first = (backwards ? chunks - 1 - i : i) * chunk;
    work(first, std::min(chunk, actions - first));
  }
}

// What the distribution of an action is made of logits by.
struct LogitShape {
  double temperature, softcap;
};

// [c,V] float32, capped in their place.
at::Tensor capped(at::Tensor logits, double softcap) {
  return softcap == 0 ? logits : logits.div_(softcap).tanh_().mul_(softcap);
}

// own_logit_rows() in the library's operators; uses up the logits. The backward needs no sums.
LogitRows plain_logit_rows(at::Tensor logits, const at::Tensor& targets, const LogitShape& shape, bool with_entropy) {
  const at::Tensor all = at::_log_softmax(capped(std::move(logits), shape.softcap).div_(shape.temperature), 1, false);  // [c,V]
  const at::Tensor logprobs = all.gather(1, targets.unsqueeze(1)).squeeze(1);
  return {logprobs, at::zeros_like(logprobs), with_entropy ? all.exp().mul_(all).sum(1).neg_() : at::Tensor()};
}

// The gradient of the logits, which it uses up, in the dtype. Gradients and entropies [c]; without `of_entropies` the work for
// them is not done.
//
// d logprob / d logit = (1 at the target) - probability;  d entropy / d logit = -probability * (log probability + entropy)
at::Tensor plain_logit_slopes(at::Tensor logits, const at::Tensor& targets, const LogitRows& rows, const at::Tensor& of_logprobs,
                              const at::Tensor& of_entropies, const LogitShape& shape, at::ScalarType dtype) {
  const bool with_entropy = of_entropies.defined();
  logits = capped(std::move(logits), shape.softcap);
  const at::Tensor of_cap = shape.softcap == 0 ? at::Tensor() : logits.div(shape.softcap).square_().neg_().add_(1);  // 1 - tanh^2
  const at::Tensor all = at::_log_softmax(logits.div_(shape.temperature), 1, false);
  logits.reset();
  const at::Tensor probabilities = with_entropy ? all.exp() : all.exp_();
  const at::Tensor grad = of_logprobs.unsqueeze(1);  // [c,1]
  const at::Tensor slope = (with_entropy ? probabilities.mul(grad) : probabilities.mul_(grad)).neg_();
  slope.scatter_add_(1, targets.unsqueeze(1), grad);
  if (with_entropy) slope.sub_(all.add_(rows.entropies.unsqueeze(1)).mul_(probabilities).mul_(of_entropies.unsqueeze(1)));
  slope.div_(shape.temperature);
  if (of_cap.defined()) slope.mul_(of_cap);
  return slope.to(dtype);
}

// What was kept for one backward; undefined: nothing, or another backward had it.
at::Tensor taken(AutogradContext* context, const char* name) {
  const auto found = context->saved_data.find(name);
  if (found == context->saved_data.end()) return {};
  at::Tensor tensor = found->second.toTensor();
  context->saved_data.erase(found);
  return tensor;
}

// Likewise by our kernel.
at::Tensor fused_logit_slopes(const at::Tensor& logits, const at::Tensor& targets, const LogitRows& rows,
                              const at::Tensor& of_logprobs, const at::Tensor& of_entropies, const LogitShape& shape,
                              at::ScalarType dtype) {
  const at::Tensor slopes = dtype == at::kFloat ? logits : at::empty_like(logits, dtype);
  own_logit_slopes(logits, targets, rows, of_logprobs, of_entropies, shape.temperature, shape.softcap, slopes);
  return slopes;
}

class ActionLogprobsFunction : public torch::autograd::Function<ActionLogprobsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, double softcap, bool narrow, bool with_entropy,
                               bool trains) {
    const at::ScalarType dtype = narrow ? at::kBFloat16 : at::kFloat;
    const LogitWork by = work_on(head.device());
    const bool keeps = trains && by == LogitWork::kOwnKernel;
    const at::Tensor operand = head.to(dtype);
    const at::Tensor logprobs = at::empty({hidden.size(0)}, hidden.options()), log_sums = at::empty_like(logprobs);
    const at::Tensor entropy = at::empty({with_entropy ? hidden.size(0) : 0}, hidden.options());
    for_each_chunk(hidden, head, by, /*backwards=*/false, [&](int64_t first, int64_t count) {
      at::Tensor logits = wide_product(hidden.narrow(0, first, count).to(dtype), operand.t());  // [c,V]
      const at::Tensor chosen = targets.narrow(0, first, count);
      const LogitRows rows = by == LogitWork::kOwnKernel
                                 ? own_logit_rows(logits, chosen, temperature, softcap, with_entropy)
                                 : plain_logit_rows(std::move(logits), chosen, {temperature, softcap}, with_entropy);
      logprobs.narrow(0, first, count).copy_(rows.logprobs);
      log_sums.narrow(0, first, count).copy_(rows.log_sums);
      if (with_entropy) entropy.narrow(0, first, count).copy_(rows.entropies);
      if (keeps && first + count == hidden.size(0)) context->saved_data["logits"] = logits;
    });
    if (keeps) context->saved_data["operand"] = operand;
    context->save_for_backward({hidden, head, targets, log_sums, entropy});
    context->set_materialize_grads(false);  // without a gradient of the entropies the backward does without its work
    context->saved_data["temperature"] = temperature;
    context->saved_data["softcap"] = softcap;
    context->saved_data["narrow"] = narrow;
    return {logprobs, entropy};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &hidden = saved[0], &head = saved[1], &targets = saved[2], &log_sums = saved[3], &entropy = saved[4];
    const LogitShape shape{context->saved_data["temperature"].toDouble(), context->saved_data["softcap"].toDouble()};
    const at::ScalarType dtype = context->saved_data["narrow"].toBool() ? at::kBFloat16 : at::kFloat;
    const LogitWork by = work_on(head.device());
    const at::Tensor of_logprobs = gradients[0].defined() ? gradients[0] : at::zeros({hidden.size(0)}, hidden.options());
    variable_list result(8);
    if (context->needs_input_grad(0)) result[0] = at::empty(hidden.sizes(), hidden.options());
    if (context->needs_input_grad(1)) result[1] = at::zeros(head.sizes(), hidden.options());
    at::Tensor operand = taken(context, "operand"), kept = taken(context, "logits");  // of the last chunk
    if (!operand.defined()) operand = head.to(dtype);
    for_each_chunk(hidden, head, by, /*backwards=*/true, [&](int64_t first, int64_t count) {
      const auto part = [&](const at::Tensor& x) { return x.narrow(0, first, count); };
      const at::Tensor in = part(hidden).to(dtype), of_entropies = gradients[1].defined() ? part(gradients[1]) : at::Tensor();
      const LogitRows rows{{}, part(log_sums), of_entropies.defined() ? part(entropy) : at::Tensor()};
      at::Tensor logits = kept.defined() ? std::exchange(kept, {}) : wide_product(in, operand.t());  // [c,V]
      const at::Tensor slopes =
          by == LogitWork::kOwnKernel
              ? fused_logit_slopes(logits, part(targets), rows, part(of_logprobs), of_entropies, shape, dtype)
              : plain_logit_slopes(std::move(logits), part(targets), rows, part(of_logprobs), of_entropies, shape, dtype);
      logits.reset();
      if (result[0].defined()) part(result[0]).copy_(wide_product(slopes, operand));
      if (result[1].defined()) add_wide_product(result[1], slopes.t(), in);
    });
    return result;
  }
};

}  // namespace

int64_t rows_at_a_time(int64_t vocabulary, LogitWork work) {
  constexpr int64_t kLogits = int64_t{1} << 23, kLeast = 16, kLeastApart = 2048, kLeastOfKernel = 8192;
  const int64_t least = work == LogitWork::kHost ? kLeast : work == LogitWork::kApart ? kLeastApart : kLeastOfKernel;
  return std::max(least, kLogits / vocabulary);
}

ActionLogprobs action_logprobs(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                               const LogprobOptions& options) {
  SLUICE_CHECK(hidden.dim() == 2 && head.dim() == 2 && hidden.size(1) == head.size(1),
               "hidden [A,H] and head [V,H] must agree in H");
  SLUICE_CHECK(targets.dim() == 1 && targets.size(0) == hidden.size(0) && targets.scalar_type() == at::kLong,
               "targets must be int64 [A]");
  SLUICE_CHECK(options.temperature > 0 && options.softcap >= 0, "a temperature is positive, a soft cap not negative");
  const bool trains = at::GradMode::is_enabled() && (hidden.requires_grad() || head.requires_grad());
  const variable_list outputs = ActionLogprobsFunction::apply(hidden, head, targets, options.temperature, options.softcap,
                                                              options.precision == Precision::kBfloat16, options.entropy, trains);
  return {outputs[0], options.entropy ? outputs[1] : at::Tensor()};
}

}  // namespace sluice::models::portable
