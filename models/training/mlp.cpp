#include "models/training/mlp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "base/error.h"
#include "models/training/matrix_products.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 1 << 14;  // elements: some 10 us of work

// What goes into the activation, and what its result is multiplied with: undefined in a plain network. [T,I]
struct Inner {
  at::Tensor gated, raised;
};

const float* data_or_null(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

at::Tensor activate(const Inner& inner, Activation activation) {
  const at::Tensor out = at::empty_like(inner.gated);
  const float *gate = data_or_null(inner.gated), *up = data_or_null(inner.raised);
  float* to = out.mutable_data_ptr<float>();
  parallel_ranges(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    activation_forward(activation, gate + begin, up == nullptr ? nullptr : up + begin, end - begin, to + begin);
  });
  return out;
}

Inner activation_gradient(const Inner& inner, const at::Tensor& grad, Activation activation) {
  const bool has_gate = inner.raised.defined();
  const Inner result{at::empty_like(inner.gated), has_gate ? at::empty_like(inner.raised) : at::Tensor()};
  const float *gate = data_or_null(inner.gated), *up = data_or_null(inner.raised), *from = grad.const_data_ptr<float>();
  float* to_gate = result.gated.mutable_data_ptr<float>();
  float* to_up = has_gate ? result.raised.mutable_data_ptr<float>() : nullptr;
  parallel_ranges(grad.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (has_gate) {
      activation_backward(activation, gate + begin, up + begin, from + begin, end - begin, to_gate + begin, to_up + begin);
    } else {
      activation_backward(activation, gate + begin, nullptr, from + begin, end - begin, to_gate + begin, nullptr);
    }
  });
  return result;
}

at::Tensor present(const at::Tensor& x) { return x.numel() > 0 ? x : at::Tensor(); }

// Arguments that a network does not have are empty tensors: the library does not take undefined ones.
class Mlp : public torch::autograd::Function<Mlp> {
  enum Argument { kResidual, kX, kGate, kUp, kDown, kGateBias, kUpBias, kDownBias, kActivation, kArguments };

 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& residual, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& up, const at::Tensor& down, const at::Tensor& gate_bias, const at::Tensor& up_bias,
                            const at::Tensor& down_bias, int64_t activation) {
    const bool gates = gate.numel() > 0;
    Inner inner;
    if (gates) inner.gated = layer_output(x, gate, present(gate_bias));
    (gates ? inner.raised : inner.gated) = layer_output(x, up, present(up_bias));
    context->save_for_backward({x, gate, up, down, inner.gated, inner.raised});
    context->saved_data["activation"] = activation;
    return layer_output(activate(inner, static_cast<Activation>(activation)), down, present(down_bias), present(residual));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &down = saved[3];
    const Inner inner{saved[4], saved[5]};
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const at::Tensor grad = gradients[0].contiguous();  // [T,H]
    const auto wants = [&](Argument argument) { return context->needs_input_grad(argument); };
    variable_list result(kArguments);
    if (wants(kResidual)) result[kResidual] = grad;
    if (wants(kDown)) add_weight_gradient(result[kDown] = at::zeros_like(down), grad, activate(inner, activation));
    if (wants(kDownBias)) result[kDownBias] = grad.sum(0);

    at::Tensor grad_inner = at::zeros_like(inner.gated);  // [T,I]
    add_input_gradient(grad_inner, grad, down);
    const Inner grads = activation_gradient(inner, grad_inner, activation);
    grad_inner.reset();
    const at::Tensor &grad_gate = grads.gated, &grad_up = grads.raised.defined() ? grads.raised : grads.gated;
    const bool gates = gate.numel() > 0;
    result[kX] = at::zeros_like(x);
    if (gates) add_input_gradient(result[kX], grad_gate, gate);
    add_input_gradient(result[kX], grad_up, up);
    if (wants(kGate) && gates) add_weight_gradient(result[kGate] = at::zeros_like(gate), grad_gate, x);
    if (wants(kUp)) add_weight_gradient(result[kUp] = at::zeros_like(up), grad_up, x);
    if (wants(kGateBias)) result[kGateBias] = grad_gate.sum(0);
    if (wants(kUpBias)) result[kUpBias] = grad_up.sum(0);
    return result;
  }
};

void check_shapes(const at::Tensor& residual, const at::Tensor& x, const MlpWeights& w) {
  SLUICE_CHECK(x.dim() == 2 && x.is_cpu() && x.scalar_type() == at::kFloat, "x must be [T,H], float32, on the CPU");
  SLUICE_CHECK(!residual.defined() || residual.sizes() == x.sizes(), "residual must be [T,H]");
  SLUICE_CHECK(w.up.dim() == 2 && w.up.size(1) == x.size(1) && (!w.gate.defined() || w.gate.sizes() == w.up.sizes()),
               "gate and up must be [I,H]");
  SLUICE_CHECK(w.down.size(0) == x.size(1) && w.down.size(1) == w.up.size(0), "down must be [H,I]");
  const auto fits = [](const at::Tensor& bias, const at::Tensor& weight) {
    return !bias.defined() || (weight.defined() && bias.numel() == weight.size(0));
  };
  SLUICE_CHECK(fits(w.gate_bias, w.gate) && fits(w.up_bias, w.up) && fits(w.down_bias, w.down),
               "a bias has one entry per output");
}

}  // namespace

at::Tensor mlp(const at::Tensor& residual, const at::Tensor& x, const MlpWeights& w, Activation activation) {
  check_shapes(residual, x, w);
  const at::Tensor none = at::empty({0}, x.options());
  const auto or_none = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor : none; };
  return Mlp::apply(or_none(residual), x, or_none(w.gate), w.up, w.down, or_none(w.gate_bias), or_none(w.up_bias),
                    or_none(w.down_bias), static_cast<int64_t>(activation));
}

}  // namespace sluice::models
