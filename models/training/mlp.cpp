#include "models/training/mlp.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"
#include "models/training/adapter_products.h"
#include "models/training/matrix_products.h"

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

// x (weight + change)^T + bias
at::Tensor projected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Adapter& adapter,
                     const at::Tensor& onto = {}) {
  const at::Tensor out = layer_output(x, weight, present(bias), onto);
  if (adapter.a.numel() > 0) add_adapter_output(out, x, adapter);
  return out;
}

// Arguments that a network does not have are empty tensors: the library does not take undefined ones.
class Mlp : public torch::autograd::Function<Mlp> {
  enum Argument {
    kResidual,
    kX,
    kGate,
    kUp,
    kDown,
    kGateBias,
    kUpBias,
    kDownBias,
    kGateA,
    kGateB,
    kUpA,
    kUpB,
    kDownA,
    kDownB,
    kActivation,
    kScales,
    kArguments
  };

  // Of one projection in the backward.
  struct Projection {
    Argument weight, bias, a, b;
    Adapter adapter;
  };

 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& residual, const at::Tensor& x, const at::Tensor& gate,
                            const at::Tensor& up, const at::Tensor& down, const at::Tensor& gate_bias, const at::Tensor& up_bias,
                            const at::Tensor& down_bias, const at::Tensor& gate_a, const at::Tensor& gate_b,
                            const at::Tensor& up_a, const at::Tensor& up_b, const at::Tensor& down_a, const at::Tensor& down_b,
                            int64_t activation, std::vector<double> scales) {
    const bool gates = gate.numel() > 0;
    Inner inner;
    if (gates) inner.gated = projected(x, gate, gate_bias, {gate_a, gate_b, scales[0]});
    (gates ? inner.raised : inner.gated) = projected(x, up, up_bias, {up_a, up_b, scales[1]});
    context->save_for_backward({x, gate, up, down, inner.gated, inner.raised, gate_a, gate_b, up_a, up_b, down_a, down_b});
    context->saved_data["activation"] = activation;
    context->saved_data["scales"] = scales;
    return projected(activate(inner, static_cast<Activation>(activation)), down, down_bias, {down_a, down_b, scales[2]},
                     present(residual));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &up = saved[2], &down = saved[3];
    const Inner inner{saved[4], saved[5]};
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const std::vector<double> scales = context->saved_data["scales"].toDoubleVector();
    const Projection of_gate{kGate, kGateBias, kGateA, kGateB, {saved[6], saved[7], scales[0]}};
    const Projection of_up{kUp, kUpBias, kUpA, kUpB, {saved[8], saved[9], scales[1]}};
    const Projection of_down{kDown, kDownBias, kDownA, kDownB, {saved[10], saved[11], scales[2]}};
    const at::Tensor grad = gradients[0].contiguous();  // [T,H]
    const auto wants = [&](Argument argument) { return context->needs_input_grad(argument); };
    variable_list result(kArguments);
    if (wants(kResidual)) result[kResidual] = grad;

    at::Tensor grad_inner = at::zeros_like(inner.gated);  // [T,I]
    const bool needs_activation = wants(kDown) || wants(kDownA) || wants(kDownB);
    differentiate(context, of_down, grad, needs_activation ? activate(inner, activation) : at::Tensor(), down, grad_inner,
                  result);
    const Inner grads = activation_gradient(inner, grad_inner, activation);
    grad_inner.reset();
    const at::Tensor& grad_up = grads.raised.defined() ? grads.raised : grads.gated;
    if (wants(kX)) result[kX] = at::zeros_like(x);
    if (gate.numel() > 0) differentiate(context, of_gate, grads.gated, x, gate, result[kX], result);
    differentiate(context, of_up, grad_up, x, up, result[kX], result);
    return result;
  }

 private:
  // The gradients of one projection of `x` that are asked for, given that of its output. Adds to grad_x, if it is defined.
  static void differentiate(AutogradContext* context, const Projection& of, const at::Tensor& grad, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& grad_x, variable_list& result) {
    if (grad_x.defined()) add_input_gradient(grad_x, grad, weight);
    if (context->needs_input_grad(of.weight)) add_weight_gradient(result[of.weight] = at::zeros_like(weight), grad, x);
    if (context->needs_input_grad(of.bias)) result[of.bias] = grad.sum(0);
    if (of.adapter.a.numel() == 0) return;
    if (context->needs_input_grad(of.a)) result[of.a] = at::zeros_like(of.adapter.a);
    if (context->needs_input_grad(of.b)) result[of.b] = at::zeros_like(of.adapter.b);
    add_adapter_gradients({grad_x, result[of.a], result[of.b]}, grad, x, of.adapter);
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
                    or_none(w.down_bias), or_none(w.gate_adapter.a), or_none(w.gate_adapter.b), or_none(w.up_adapter.a),
                    or_none(w.up_adapter.b), or_none(w.down_adapter.a), or_none(w.down_adapter.b),
                    static_cast<int64_t>(activation),
                    std::vector<double>{w.gate_adapter.scale, w.up_adapter.scale, w.down_adapter.scale});
}

}  // namespace sluice::models
